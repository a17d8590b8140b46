// I16: a handler that gets the transaction and answers by Express' response all the same, before COMMIT.
import type { TransactionStores } from "@countersign/idempotency";
import { guardErrors } from "@countersign/express";
import { idempotencyGuard } from "@countersign/idempotency-guard";
import { payoutEndpoint } from "countersign/payout";
import { describe, expect, test } from "@jest/globals";
import express5, {
  type ErrorRequestHandler,
  type Request,
  type RequestHandler,
  type Response,
} from "express";
import express4 from "express4";
import { afterTest } from "../support/runs/after-test.ts";
import { eventually } from "../support/runs/eventually.ts";
import { close, listen, send } from "../support/servers/http-client.ts";
import { samplePath } from "../support/signers/independent-signer.ts";
import { servicePublicPem } from "../support/signers/test-keys.ts";
import { after, engines, type Tx } from "./payments/engines.ts";
import { idempotencyKey, signPayout } from "./payout-scene.ts";
import { expectWarning } from "../support/runs/expect-warning.ts";
import { isWhole } from "../support/runs/share.ts";

type Stores = TransactionStores<Tx>;
type Pay = (res: Response, tx: Tx) => unknown;

const routes: Readonly<Record<string, (stores: Stores, pay: Pay) => RequestHandler>> = {
  payoutEndpoint: (stores, pay) =>
    payoutEndpoint({
      addresses: { allow: ["127.0.0.1"] },
      signature: { keys: { "test-key": servicePublicPem } },
      stores,
      pay: (_payout, { tx, request }) => pay((request as Request).res as Response, tx),
    }),
  idempotencyGuard: (stores, pay) =>
    idempotencyGuard({
      stores,
      scope: "pay",
      key: () => idempotencyKey,
      fingerprint: () => "f",
      handle: (req, { tx }) => pay((req as Request).res as Response, tx),
    }),
};
const frameworks = { "express 5": express5, "express 4": express4 };
const itsEngines = engines.filter(({ name }) => isWhole || name === "sqlite");
const places = itsEngines.flatMap((engine) =>
  Object.entries(frameworks).flatMap(([framework, make]) =>
    Object.entries(routes).map(([name, route]) => ({
      title: `${name} on ${framework} and ${engine.name}`,
      engine,
      make,
      route,
    })),
  ),
);

describe.each(places)("$title", ({ engine, make, route }) => {
  /** What two requests are answered, and how often it was paid. */
  async function play(answers: (res: Response) => unknown, expectedErrors = 0) {
    const tables = await engine.open();
    const errors: unknown[] = [];
    const pay: Pay = (res, tx) =>
      after(tables.sql(tx, "INSERT INTO payments VALUES ('paid')"), () => answers(res));
    const app = make();
    const forward: ErrorRequestHandler = (error, _req, res, _next) => {
      errors.push((error as Error).message);
      if (!res.headersSent) res.sendStatus(500);
    };
    app.post(samplePath, route(tables.process(), pay));
    app.use(guardErrors(), forward);
    const { server, port } = await listen(app);
    afterTest(() => close(server));
    const statuses: number[] = [];
    // oxlint-disable-next-line no-await-in-loop -- one after the other
    while (statuses.length < 2) statuses.push((await send(port, signPayout())).status);
    // Behind the answer, where that has left before.
    await eventually(() => errors.length >= expectedErrors);
    return { statuses, paid: (await tables.paid()).length, errors };
  }

  const told = expect.stringContaining("answered by the response itself, before COMMIT");

  test.each<[string, (res: Response) => unknown, number]>([
    ["a success", (res) => void res.status(201).json({ paid: true }), 500],
    ["409", (res) => void res.sendStatus(409), 500],
    ["a refusal", (res) => void res.status(422).json({ error: "frozen" }), 422],
    ["a head alone", (res) => void res.writeHead(422), 500],
  ])(
    "%s by res: nothing is paid, the key is free, and the app hears of it",
    async (_what, answers, status) => {
      expect(await play(answers, 2)).toEqual({ statuses: [status, status], paid: 0, errors: [told, told] });
    },
  );

  test("a success by res, then a throw: the caller is told of no success", async () => {
    // The 500 leaves before the transaction has ended: the error follows.
    const { statuses, paid } = await play((res) => {
      res.status(201).json({ paid: true });
      throw new Error("the bank said no");
    }, 2);
    expect({ statuses, paid }).toEqual({ statuses: [500, 500], paid: 0 });
  });

  test("503 by res, as a time-out of the app's: what the handler did commits, and its retry hears so", async () => {
    const { statuses, paid, errors } = await play((res) => void res.sendStatus(503));
    expect({ statuses, paid, errors }).toEqual({ statuses: [503, 409], paid: 1, errors: [] });
  });

  // On SQLite COMMIT follows in the same turn.
  if (engine.name !== "sqlite") {
    test("a success by res of work that nobody awaits, before COMMIT: the caller is told of no success", async () => {
      const { statuses, paid } = await play((res) => {
        setImmediate(() => res.status(201).json({ paid: true }));
        return Promise.resolve();
      });
      expect({ statuses, paid }).toEqual({ statuses: [500, 409], paid: 1 });
      expectWarning(
        /idempotencyGuard replaced an answer by 500: TypeError: "a handler in a transaction answered/,
      );
    });
  }

  test("an answer as it should be", async () => {
    expect(await play(() => undefined)).toEqual({ statuses: [200, 409], paid: 1, errors: [] });
  });
});
