// The single middlewares in an order in which strangers could claim a payer's keys: an error at the first request, and no payout.
import { createHmac } from "node:crypto";
import type { Server } from "node:http";
import { afterEach, describe, expect, test } from "@jest/globals";
import { contentDigest } from "@countersign/content-digest";
import { guardErrors, type Middleware } from "@countersign/express";
import { httpSignatureVerify, memoryNonceStore } from "@countersign/http-signature-verify";
import { memoryIdempotencyStore } from "@countersign/idempotency";
import { idempotencyGuard } from "@countersign/idempotency-guard";
import { ipAllowlist } from "@countersign/ip-allowlist";
import { jsonBody, rawBody } from "@countersign/raw-body";
import { createStores } from "@countersign/store-sql";
import { webhookBasicAuth } from "@countersign/webhook-basic-auth";
import { webhookHmac } from "@countersign/webhook-hmac";
import { createWebhookHandler, httpsOnly, receiveWebhook } from "countersign/webhooks";
import type { RequestHandler } from "express";
import express4 from "express4";
import Database from "libsql";
import { afterTest } from "../support/runs/after-test.ts";
import { expressVersionsWith, type ExpressFactory } from "../support/runs/express-versions.ts";
import { close, listen, send } from "../support/servers/http-client.ts";
import { samplePath, signRequest } from "../support/signers/independent-signer.ts";
import { servicePublicPem } from "../support/signers/test-keys.ts";

const running: Server[] = [];
afterEach(async () => {
  await Promise.all(running.splice(0).map(close));
});

const checks: readonly (readonly [string, () => Middleware])[] = [
  [
    "httpSignatureVerify",
    () => httpSignatureVerify({ keys: { "test-key-ed25519": servicePublicPem }, nonces: memoryNonceStore() }),
  ],
  ["ipAllowlist", () => ipAllowlist({ allow: ["127.0.0.1"] })],
  ["webhookBasicAuth", () => webhookBasicAuth({ username: "test-user", password: "test-password" })],
  ["webhookHmac", () => webhookHmac({ secrets: ["test-secret-test-secret-test-secret"] })],
];

const key = (): unknown => "op.from.to";

/** Sends a payout to the route of these handlers, and gives its status and the codes of what was refused. */
async function answerOf(framework: ExpressFactory, ...handlers: readonly RequestHandler[]) {
  const refused: string[] = [];
  const app = framework();
  app.post(samplePath, rawBody(), jsonBody(), ...handlers);
  app.use(
    guardErrors({
      onReject: (error) => void refused.push(`${Reflect.get(Object(error), "code")}: ${String(error)}`),
    }),
  );
  const { server, port } = await listen(app);
  running.push(server);
  const { status } = await send(port, signRequest());
  return { status, refused };
}

describe.each(expressVersionsWith(express4))("on %s", (_version, framework) => {
  describe("idempotencyGuard() before a check", () => {
    test.each(checks)(
      "%s refuses every request as misplaced, and no key is left behind",
      async (name, check) => {
        const store = memoryIdempotencyStore();
        let runs = 0;
        const handler: RequestHandler = (_req, res) => {
          runs += 1;
          res.json({});
        };
        const guard = idempotencyGuard({ store, key });
        expect(await answerOf(framework, guard, check(), handler)).toEqual({
          status: 500,
          refused: [expect.stringMatching(`^checked-after-claim: .*${name}\\(\\) runs after`)],
        });
        expect(runs).toBe(0);
        expect(store.read("op.from.to")).toBeUndefined();
      },
    );
  });

  // It responds itself, so a check after it would never run.
  describe("idempotencyGuard() with handle before a check", () => {
    const handled = (options: object = {}): { guard: Middleware & RequestHandler; left: () => number[] } => {
      const database = new Database(":memory:");
      const stores = createStores({ database });
      afterTest(() => {
        stores.close();
        database.close();
      });
      database.exec("CREATE TABLE payouts (key TEXT)");
      const insert = database.prepare("INSERT INTO payouts VALUES ('op.from.to')");
      const guard = idempotencyGuard({
        stores,
        scope: "payout",
        key,
        handle: () => void insert.run(),
        ...options,
      });
      /** How many payouts were paid, and how many keys claimed. */
      const left = (): number[] => [
        database.prepare("SELECT key FROM payouts").all().length,
        stores.idempotency.read("payout:op.from.to") === undefined ? 0 : 1,
      ];
      return { guard, left };
    };

    test.each<readonly [string, () => Middleware]>([...checks, ["contentDigest", () => contentDigest()]])(
      "%s on the same route makes the guard refuse every request, and nothing is paid",
      async (name, check) => {
        const { guard, left } = handled();
        expect(await answerOf(framework, guard, check())).toEqual({
          status: 500,
          refused: [
            expect.stringMatching(`^checked-after-claim: .*${name}\\(\\) is mounted after .* never runs`),
          ],
        });
        expect(left()).toEqual([0, 0]);
      },
    );

    test("a check further down the route is found, though the guard lets other methods pass", async () => {
      const { guard, left } = handled({ methods: ["POST"] });
      const between: RequestHandler = (_req, _res, next) => next();
      const check = ipAllowlist({ allow: ["127.0.0.1"] });
      expect((await answerOf(framework, guard, between, check)).status).toBe(500);
      expect(left()).toEqual([0, 0]);
    });

    test("any handler after it is refused, since it would never run", async () => {
      const { guard, left } = handled();
      const own: RequestHandler = (_req, res) => void res.status(401).end();
      expect(await answerOf(framework, guard, own)).toEqual({
        status: 500,
        refused: [expect.stringMatching("^checked-after-claim: .*a handler is mounted after")],
      });
      expect(left()).toEqual([0, 0]);
    });

    test.each<[string, object]>([
      ["methods", { methods: ["POST"] }],
      ["required: false", { required: false }],
    ])("a handler after it stays, where requests pass the guard by %s", async (_option, options) => {
      const { guard, left } = handled(options);
      const own: RequestHandler = (_req, res) => void res.status(204).end();
      expect(await answerOf(framework, guard, own)).toEqual({ status: 200, refused: [] });
      expect(left()).toEqual([1, 1]);
    });

    test("the checks of another method on the route, and error handlers, stay", async () => {
      const { guard, left } = handled();
      const app = framework();
      app
        .route(samplePath)
        .post(rawBody(), jsonBody(), guard, guardErrors())
        .get(ipAllowlist({ allow: ["127.0.0.1"] }), (_req, res) => void res.end());
      const { server, port } = await listen(app);
      running.push(server);
      expect((await send(port, signRequest())).status).toBe(200);
      expect((await send(port, { ...signRequest(), method: "GET", body: Buffer.alloc(0) })).status).toBe(200);
      expect(left()).toEqual([1, 1]);
    });
  });

  describe("receiveWebhook() before a check", () => {
    const webhook = { secret: "test-secret-test-secret-test-secret" };
    const events = JSON.stringify({
      webhook_id: "wh-1",
      timestamp: "2027-01-15T08:00:00.123456789Z",
      events: [
        { event_id: "ev-1", timestamp: "2027-01-15T08:00:00.123456789Z", type: "buyer.approved", data: {} },
      ],
    });

    /** Sends a webhook that only its HMAC proves. */
    async function handled(...later: readonly RequestHandler[]) {
      const seen: string[] = [];
      const handler = createWebhookHandler({
        store: memoryIdempotencyStore({ retentionMs: 72 * 3_600_000 }),
        fallback: ({ event_id }) => void seen.push(event_id),
      });
      const codes: unknown[] = [];
      const app = framework();
      app.all("/webhooks", webhookHmac(webhook), receiveWebhook(handler), ...later);
      app.use(guardErrors({ onReject: (error) => void codes.push(Reflect.get(Object(error), "code")) }));
      const { server, port } = await listen(app);
      running.push(server);
      const signature = createHmac("sha256", webhook.secret).update(events).digest("base64");
      const headers = ["Content-Type", "application/json", "X-Payload-Signature", signature];
      const wire = { method: "POST", path: "/webhooks", headers, body: Buffer.from(events) };
      return { status: (await send(port, wire)).status, codes, seen };
    }

    test("handles the event of a route without one", async () => {
      expect(await handled()).toEqual({ status: 200, codes: [], seen: ["ev-1"] });
    });

    test.each<[string, RequestHandler]>([
      ["httpsOnly()", httpsOnly()],
      ["ipAllowlist()", ipAllowlist({ allow: ["192.0.2.10"] })],
      ["webhookBasicAuth()", webhookBasicAuth({ username: "test-user", password: "test-password" })],
      ["a handler of the app", (_req, res) => void res.status(401).end()],
    ])("with %s after it refuses every webhook, and handles none", async (_name, later) => {
      expect(await handled(later)).toEqual({ status: 500, codes: ["checked-after-claim"], seen: [] });
    });
  });
});
