// What a handler in the transaction of its key gets as `req.body` if no parser has run.
import { afterEach, expect, test } from "@jest/globals";
import { guardErrors } from "@countersign/express";
import { answer, idempotencyGuard } from "@countersign/idempotency-guard";
import { jsonBody, rawBody } from "@countersign/raw-body";
import { createStores } from "@countersign/store-sql";
import type { ErrorRequestHandler, Request, RequestHandler } from "express";
import express5 from "express";
import express4 from "express4";
import Database from "libsql";
import type { ExpressFactory } from "../support/runs/express-versions.ts";
import { withServer } from "../support/servers/wire.ts";

const frameworks: readonly (readonly [string, ExpressFactory])[] = [
  ["Express 5", express5],
  ["Express 4", express4],
];
const database = new Database(":memory:");
database.exec("CREATE TABLE orders (item TEXT)");
afterEach(() => {
  database.exec("DELETE FROM orders; DELETE FROM countersign_idempotency");
});

async function order(
  framework: ExpressFactory,
  parsers: readonly RequestHandler[],
  itemOf: (req: Request) => string,
  contentType = "application/json",
) {
  const guard = idempotencyGuard({
    stores: createStores({ database }),
    scope: "pay",
    key: (req) => req.headers["idempotency-key"],
    handle(req, { tx }) {
      const item = itemOf(req as unknown as Request);
      tx.prepare("INSERT INTO orders VALUES (?)").run(item);
      return answer(201, { item });
    },
  });
  const app = framework();
  app.post("/orders", rawBody(), ...parsers, guard);
  const seen: unknown[] = [];
  const log: ErrorRequestHandler = (error, req, _res, next) => {
    seen.push((error as { code?: unknown }).code, req.rawBody?.length);
    next(error);
  };
  app.use(log, guardErrors());
  const status = await withServer(app, async (port) => {
    const headers = { "Idempotency-Key": "k1", "Content-Type": contentType };
    const init = { method: "POST", headers, body: '{"item":"A"}' };
    return (await fetch(`http://127.0.0.1:${port}/orders`, init)).status;
  });
  return { status, seen, orders: database.prepare("SELECT item FROM orders").all() };
}

test.each(frameworks)(
  "an unparsed body is no empty one on %s: 415, nothing written; JSON is parsed",
  async (_, framework) => {
    const itemOf = (req: Request): string => String(Object(req.body).item);
    const { status, seen, orders } = await order(framework, [], itemOf, "text/plain");
    expect({ status, seen, orders }).toEqual({
      status: 415,
      seen: ["media-type-unsupported", 12],
      orders: [],
    });
    for (const parsers of [[], [jsonBody() as RequestHandler], [framework.json()]]) {
      expect(await order(framework, parsers, itemOf)).toMatchObject({ status: 201, orders: [{ item: "A" }] });
      database.exec("DELETE FROM orders; DELETE FROM countersign_idempotency");
    }
  },
);

test.each(frameworks)("a handler on %s may parse the bytes by itself", async (_, framework) => {
  const itemOf = (req: Request): string => {
    req.body = JSON.parse(String(req.rawBody)) as unknown;
    return Object(req.body).item;
  };
  expect(await order(framework, [], itemOf)).toMatchObject({ status: 201, orders: [{ item: "A" }] });
});
