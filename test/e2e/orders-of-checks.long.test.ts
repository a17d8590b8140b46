// All 720 orders of a payout's six middlewares: none pays what a check would have refused, and none refuses a good payout for good.
import { expect, test } from "@jest/globals";
import { contentDigest } from "@countersign/content-digest";
import { guardErrors, type Middleware } from "@countersign/express";
import { httpSignatureVerify, memoryNonceStore } from "@countersign/http-signature-verify";
import { answer, idempotencyGuard } from "@countersign/idempotency-guard";
import { ipAllowlist } from "@countersign/ip-allowlist";
import { jsonBody, rawBody, textAt } from "@countersign/raw-body";
import { createStores } from "@countersign/store-sql";
import express, { type Express, type RequestHandler } from "express";
import Database from "libsql";
import { afterTest } from "../support/runs/after-test.ts";
import { close, listen, send } from "../support/servers/http-client.ts";
import { samplePath, signRequest, type SigningPlan } from "../support/signers/independent-signer.ts";
import { servicePublicPem, strangerKey } from "../support/signers/test-keys.ts";

const names = [
  "ipAllowlist",
  "rawBody",
  "contentDigest",
  "httpSignatureVerify",
  "jsonBody",
  "idempotencyGuard",
];

function* ordersOf(rest: readonly string[], first: readonly string[] = []): Generator<readonly string[]> {
  if (rest.length === 0) yield first;
  for (const name of rest)
    yield* ordersOf(
      rest.filter((other) => other !== name),
      [...first, name],
    );
}

const listed = "192.0.2.10";
const body = '{"idempotency_key":"op.from.to","amount":{"value":"1.00"}}';
const requests: readonly (readonly [what: string, plan: SigningPlan, address: string, sent: string])[] = [
  ["of another key", { key: strangerKey }, listed, body],
  ["of another address", {}, "192.0.2.11", body],
  ["with a changed body", {}, listed, body.replace("1.00", "9.00")],
  ["of the service", {}, listed, body],
];

/** With `handle` the guard pays itself; else a handler follows all six. */
test.each([
  ["with handle", true],
  ["before a handler", false],
])(
  "every order of the middlewares, the guard %s",
  async (_form, pays) => {
    const database = new Database(":memory:");
    const stores = createStores({ database });
    database.exec("CREATE TABLE payouts (scope TEXT)");
    const insert = database.prepare("INSERT INTO payouts VALUES (?)");
    const rows = database.prepare("SELECT scope FROM payouts WHERE scope = ?");
    let app: Express;
    const { server, port } = await listen((req, res) => void app(req, res));
    afterTest(async () => {
      await close(server);
      stores.close();
      database.close();
    });
    const faults: string[] = [];
    const answers = new Map<string, number>();
    let position = 0;
    for (const order of ordersOf(names)) {
      const scope = `order-${(position += 1)}`;
      const key = (req: object): unknown => textAt(req, "/idempotency_key");
      const guard = pays
        ? idempotencyGuard({
            stores,
            scope,
            key,
            handle() {
              insert.run(scope);
              return answer(200, {});
            },
          })
        : idempotencyGuard({ store: stores.idempotency, scope, key });
      const made: Readonly<Record<string, Middleware>> = {
        ipAllowlist: ipAllowlist({ allow: [listed] }),
        rawBody: rawBody(),
        contentDigest: contentDigest(),
        httpSignatureVerify: httpSignatureVerify({
          keys: { "service-1": servicePublicPem },
          nonces: memoryNonceStore(),
        }),
        jsonBody: jsonBody(),
        idempotencyGuard: guard,
      };
      const pay: RequestHandler = (_req, res) => {
        insert.run(scope);
        res.json({});
      };
      app = express().set("trust proxy", "loopback");
      const handlers: RequestHandler[] = order.flatMap((name) => made[name] ?? []);
      app.post(samplePath, ...handlers, ...(pays ? [] : [pay]));
      app.use(guardErrors({ onReject: () => {} }));
      app.use(((_error, _req, res, _next) => void res.status(500).end()) as express.ErrorRequestHandler);
      for (const [what, plan, address, sent] of requests) {
        const signed = signRequest({ keyid: "service-1", body, ...plan });
        const headers = [...signed.headers, "X-Forwarded-For", address];
        // oxlint-disable-next-line no-await-in-loop -- the good payout comes last
        const { status } = await send(port, { ...signed, headers, body: Buffer.from(sent) });
        const paid = rows.all(scope).length;
        const isGood = what === "of the service";
        // Paid and told so, or a mistake of the app: never a 4xx, which the service would take for its last word.
        const isRight = isGood ? status === (paid === 1 ? 200 : 500) : paid === 0 && status >= 400;
        if (!isRight) faults.push(`${order.join(", ")}: ${what}: ${status}, paid ${paid} times`);
        if (isGood) answers.set(String(status), (answers.get(String(status)) ?? 0) + 1);
      }
    }
    expect(faults).toEqual([]);
    // The guard is behind the three checks of the caller, and jsonBody() between the bytes and the guard.
    expect(position).toBe(720);
    expect(answers.get("200")).toBeGreaterThan(0);
  },
  300_000,
);
