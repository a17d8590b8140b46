import { afterEach, describe, expect, test } from "@jest/globals";
import { guardErrors } from "@countersign/express";
import { memoryIdempotencyStore } from "@countersign/idempotency";
import { idempotencyGuard } from "@countersign/idempotency-guard";
import { checkIdempotencyKey } from "../src/request-key.ts";
import { bytesOf, closePlatforms, frameworks, listen, payoutGuard } from "./kit.ts";

afterEach(closePlatforms);

describe.each(frameworks)("two routes with one store on %s", (_name, framework) => {
  test("run the same key once each, under the names of their scopes", async () => {
    const store = memoryIdempotencyStore();
    const app = framework();
    app.use(bytesOf(framework));
    const runs: string[] = [];
    const sent: string[] = [];
    for (const scope of ["payout", "refund"]) {
      app.post(`/${scope}`, payoutGuard({ store, scope }), (req, res) => {
        runs.push(req.idempotency?.storeKey ?? "");
        sent.push(req.idempotency?.key ?? "");
        res.json({});
      });
    }
    const paid = await listen((req, res) => {
      req.url = `/${String(req.headers["x-route"])}`;
      app(req, res);
    });
    expect((await paid.pay({ headers: { "x-route": "payout" } })).status).toBe(200);
    expect((await paid.pay({ headers: { "x-route": "refund" } })).status).toBe(200);
    expect(sent).toEqual(["op.a.b", "op.a.b"]);
    expect(runs).toEqual(["payout:op.a.b", "refund:op.a.b"]);
    expect(store.list({ state: "done", limit: 9 }).entries.map(({ key }) => key)).toEqual(runs);
  });
});

describe("option scope", () => {
  const key = (): string => "k";

  test.each([
    ["neither", undefined, undefined],
    ["the first only", "payout", undefined],
    ["the second only", undefined, "refund"],
  ])("is required of each guard of a store: %s has one", (_name, first, second) => {
    const store = memoryIdempotencyStore();
    idempotencyGuard({ store, key, scope: first });
    expect(() => idempotencyGuard({ store, key, scope: second })).toThrow(
      /^idempotencyGuard: this store was given to another guard already.* scope: "payout"/,
    );
  });

  test("may be shared by guards that say so, and is not needed on a store of one's own", () => {
    const store = memoryIdempotencyStore();
    idempotencyGuard({ store, key, scope: "payout" });
    idempotencyGuard({ store, key, scope: "payout" });
    idempotencyGuard({ store: memoryIdempotencyStore(), key });
  });

  test("of a guard that could not be made leaves the store free", () => {
    const store = memoryIdempotencyStore();
    expect(() => idempotencyGuard({ store, key, waitMs: -1 })).toThrow(/waitMs/);
    idempotencyGuard({ store, key });
  });

  test.each(["", "Payout", "a:b", "a b", "-a", "a".repeat(33), 7, null])("refuses %p", (scope) => {
    expect(() => idempotencyGuard({ store: memoryIdempotencyStore(), key, scope: scope as string })).toThrow(
      /^idempotencyGuard: option scope must be 1 to 32 lower-case letters/,
    );
  });

  test("leaves the key as many characters as the store takes besides", () => {
    expect(checkIdempotencyKey("k".repeat(505), "refund").key).toHaveLength(512);
    expect(() => checkIdempotencyKey("k".repeat(506), "refund")).toThrow(/over 505/);
  });
});

test("guardErrors answers a drained guard with 503 and Retry-After, and ends its connection", async () => {
  const app = frameworks[0][1]();
  const guard = payoutGuard({});
  app.use(bytesOf(frameworks[0][1]));
  app.post("/pay", guard, (_req, res) => res.json({}));
  app.use(guardErrors());
  const running = await listen(app);
  const kept = { headers: { connection: "keep-alive" } };
  expect(await running.pay(kept)).toMatchObject({ status: 200, headers: { connection: "keep-alive" } });
  expect(await guard.drain()).toEqual({ keys: 0, claims: 0 });
  const refused = await running.pay({ key: "op.a.c", ...kept });
  expect(refused).toMatchObject({
    status: 503,
    code: "draining",
    headers: { "retry-after": "5", connection: "close" },
  });
});
