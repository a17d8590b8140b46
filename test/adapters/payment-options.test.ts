// What is wrong with the options of a transaction is said when it is built, and what to write instead; or it does not compile.
import { fromPg } from "@countersign/store-sql/pg";
import { idempotencyHook, payoutPlugin } from "@countersign/fastify";
import { idempotentRoute, payoutRoute } from "@countersign/fetch";
import { memoryNonceStore } from "@countersign/http-signature-verify";
import { memoryAnswerStore, memoryIdempotencyStore } from "@countersign/idempotency";
import { idempotencyGuard } from "@countersign/idempotency-guard";
import { payoutEndpoint } from "countersign/payout";
import { createAnswers, createStores } from "@countersign/store-sql";
import { createWebhookHandler } from "countersign/webhooks";
import { expect, test } from "@jest/globals";
import type { PoolClient } from "pg";
import { connectPool } from "../../packages/stores/store-sql/test/postgres/connections.ts";
import { connect, openStores } from "../../packages/stores/store-sql/test/sqlite/connections.ts";
import { afterTest } from "../support/runs/after-test.ts";
import { servicePublicPem } from "../support/signers/test-keys.ts";

type Build = (...given: never[]) => unknown;

const memory = () => ({ idempotency: memoryIdempotencyStore(), nonces: memoryNonceStore() });
const onSqlite = () => openStores(connect(":memory:"));
const onPool = () => {
  const stores = createStores({ pool: connectPool(), pruneIntervalMs: 0 });
  afterTest(() => stores.close());
  return stores;
};
const pay = (): void => {};
const later = async (): Promise<void> => {};
const asynchronous =
  "is async, and a transaction on SQLite cannot stay open across an await: write it without async";
const key = (): string => "k";
const basics = { addresses: { allow: ["127.0.0.1"] }, signature: { keys: { "test-key": servicePublicPem } } };
const payout = (more: object) => [{ ...basics, pay, stores: onSqlite(), ...more }];
const guard = (more: object) => [{ key, scope: "pay", handle: pay, stores: onSqlite(), ...more }];
const webhooks = (more: object) => [{ fallback: pay, stores: onSqlite(), ...more }];

const noTransactions =
  "option stores has no transactions: create it on your own database library, for example createStores({ database: fromPg(pool) })";
const noStores =
  "option stores must be stores of your database, for example createStores({ database }), got undefined";
const noAnswers = "option replay.answers must be an AnswerStore";
const elsewhere =
  "option replay.answers must be on the very database of stores, so that an answer commits with its key: give createAnswers({ database })";
const answersOn = (database: ReturnType<typeof connect>) => createAnswers({ database, pruneIntervalMs: 0 });
const leave = (option: string): string => `option ${option} is of lease mode; leave it out beside stores`;
const ofLease = () => ({ store: memory().idempotency });

test.each<[string, Build, () => readonly unknown[], string]>([
  ["memory stores", payoutEndpoint, () => payout({ stores: memory() }), noTransactions],
  ["stores of a pool", payoutEndpoint, () => payout({ stores: onPool() }), noTransactions],
  ["a part of the stores", payoutEndpoint, () => payout({ stores: onSqlite().transactions }), noTransactions],
  ["pay without stores", payoutEndpoint, () => payout({ stores: undefined }), noStores],
  [
    "pay without stores, beside what lease mode has",
    payoutEndpoint,
    () =>
      payout({
        stores: undefined,
        signature: { ...basics.signature, nonces: memory().nonces },
        idempotency: ofLease(),
      }),
    leave("idempotency.store"),
  ],
  [
    "stores without pay",
    payoutEndpoint,
    () => payout({ pay: undefined }),
    "option pay must be a function, got undefined",
  ],
  [
    "outcomes that are never due",
    payoutEndpoint,
    () => payout({ outcomes: { expect: () => {}, expectWithinMs: undefined } }),
    "option outcomes must be what createOutcomes() with expectWithinMs made, got an object",
  ],
  [
    "nonces beside stores",
    payoutEndpoint,
    () => payout({ signature: { ...basics.signature, nonces: memory().nonces } }),
    leave("signature.nonces"),
  ],
  [
    "a store beside stores",
    payoutEndpoint,
    () => payout({ idempotency: ofLease() }),
    leave("idempotency.store"),
  ],
  [
    "a lease beside stores",
    payoutEndpoint,
    () => payout({ idempotency: { leaseMs: 5_000 } }),
    leave("idempotency.leaseMs"),
  ],
  // The list ends without inFlightStatus, which the interface decides: on its wire 409 is final.
  [
    "an unknown option",
    payoutEndpoint,
    () => payout({ idempotency: { wait: 1 } }),
    "retryAfterSeconds, scope, reusedStatus, heldRetryAfterSeconds",
  ],
  [
    "an inFlightStatus, which the interface decides",
    payoutEndpoint,
    () => payout({ idempotency: { inFlightStatus: 409 } }),
    "option idempotency.inFlightStatus cannot be set here",
  ],
  [
    "a doneStatus, which the interface decides",
    payoutEndpoint,
    () => payout({ idempotency: { doneStatus: 204 } }),
    "option idempotency.doneStatus cannot be set here",
  ],
  [
    "no section",
    payoutEndpoint,
    () => payout({ idempotency: null }),
    'option idempotency must be an object such as { scope: "payout" }',
  ],
  [
    "a wait without end",
    payoutEndpoint,
    () => payout({ idempotency: { waitMs: Infinity } }),
    "option idempotency.waitMs must be an integer",
  ],
  [
    "a handler beside pay",
    payoutPlugin,
    () => payout({ url: "/pay", handler: pay }),
    "option handler cannot be given beside pay",
  ],
  [
    "a handler behind pay",
    payoutRoute,
    () => [...payout({}), pay],
    "takes stores and pay, or a handler, not both",
  ],
  ["memory stores of a guard", idempotencyGuard, () => guard({ stores: memory() }), noTransactions],
  ["handle without stores", idempotencyGuard, () => guard({ stores: undefined, ...ofLease() }), noStores],
  [
    "stores without handle",
    idempotencyGuard,
    () => guard({ handle: undefined }),
    "option handle must be a function, got undefined",
  ],
  ["a guard's store beside stores", idempotencyGuard, () => guard(ofLease()), leave("store")],
  ["replay without a store of answers", idempotencyGuard, () => guard({ replay: {} }), noAnswers],
  [
    "answers that no transaction reaches",
    idempotencyGuard,
    () => guard({ replay: { answers: memoryAnswerStore() } }),
    elsewhere,
  ],
  [
    "answers on another database",
    idempotencyHook,
    () => guard({ replay: { answers: answersOn(connect(":memory:")) } }),
    elsewhere,
  ],
  [
    "answers of a pool",
    idempotentRoute,
    () => guard({ replay: { answers: createAnswers({ pool: connectPool(), pruneIntervalMs: 0 }) } }),
    elsewhere,
  ],
  [
    "replay at payoutEndpoint",
    payoutEndpoint,
    () => payout({ idempotency: { replay: { answers: memoryAnswerStore() } } }),
    "option idempotency.replay",
  ],
  [
    "a handler behind handle",
    idempotentRoute,
    () => [...guard({}), pay],
    "takes stores and handle, or a handler, not both",
  ],
  [
    "methods of a route that pays",
    idempotentRoute,
    () => guard({ methods: ["POST"] }),
    "option methods cannot be set beside handle",
  ],
  [
    "a key that a route does not require",
    idempotentRoute,
    () => guard({ required: false }),
    "option required cannot be set beside handle",
  ],
  ["an async pay on SQLite", payoutEndpoint, () => payout({ pay: later }), asynchronous],
  ["an async handle on SQLite", idempotencyGuard, () => guard({ handle: later }), asynchronous],
  ["an async fallback on SQLite", createWebhookHandler, () => webhooks({ fallback: later }), asynchronous],
  ["memory stores of webhooks", createWebhookHandler, () => webhooks({ stores: memory() }), noTransactions],
  ["a webhooks' store beside stores", createWebhookHandler, () => webhooks(ofLease()), leave("store")],
  [
    "dead letters beside stores",
    createWebhookHandler,
    () => webhooks({ maxAttempts: 2 }),
    leave("maxAttempts"),
  ],
])("refuses %s: says what to write", (_case, build, given, message) => {
  const built = (): unknown => Reflect.apply(build, undefined, given());
  expect(built).toThrow(TypeError);
  expect(built).toThrow(message);
});

test("refuses a guard without a scope on tables that another guard can open", () => {
  const [options] = guard({});
  const build = (more: object = {}): unknown =>
    idempotencyGuard({ ...(options as object), ...more } as never);
  expect(() => build({ scope: undefined })).toThrow(/^idempotencyGuard: option scope is required/);
  expect(() => build({ scope: "orders" })).not.toThrow();
  expect(() => build({ scope: "refunds" })).not.toThrow();
});

/** Compiled, never called. */
export function compiled(
  sqlite: ReturnType<typeof openStores>,
  pool: Parameters<typeof fromPg<PoolClient>>[0],
): void {
  const postgres = createStores({ database: fromPg(pool) });
  payoutEndpoint({ ...basics, stores: postgres, pay: async (_payout, { tx }) => tx.query("SELECT 1") });
  payoutEndpoint({ ...basics, stores: sqlite, pay: (_payout, { tx }) => void tx.exec("SELECT 1") });
  // @ts-expect-error -- on SQLite a transaction cannot stay open across an await
  payoutEndpoint({ ...basics, stores: sqlite, pay: async () => {} });
  // @ts-expect-error -- tx is a client of pg
  payoutEndpoint({ ...basics, stores: postgres, pay: (_payout, { tx }) => tx.exec("SELECT 1") });
  // @ts-expect-error -- the stores have the key's
  payoutEndpoint({ ...basics, stores: postgres, pay, idempotency: ofLease() });
  const nonces = memoryNonceStore();
  // @ts-expect-error -- the interface decides
  payoutEndpoint({ ...basics, stores: postgres, pay, idempotency: { inFlightStatus: 503 } });
  // @ts-expect-error -- the stores have them
  payoutEndpoint({ ...basics, signature: { ...basics.signature, nonces }, stores: postgres, pay });
  // @ts-expect-error -- they have no transactions
  payoutEndpoint({ ...basics, stores: memory(), pay });
  idempotencyGuard({
    key,
    scope: "pay",
    stores: postgres,
    handle: async (_req, { tx }) => tx.query("SELECT 1"),
  });
  // @ts-expect-error -- on SQLite a transaction cannot stay open across an await
  idempotencyGuard({ key, scope: "pay", stores: sqlite, handle: async () => {} });
  const database = fromPg(pool);
  const replayed = { key, scope: "pay", stores: createStores({ database }), handle: later };
  idempotencyGuard({ ...replayed, replay: { answers: createAnswers({ database }), callers: "shared" } });
  // @ts-expect-error -- a pool alone has no transactions
  idempotencyGuard({ ...replayed, replay: { answers: createAnswers({ pool }), callers: "shared" } });
  createWebhookHandler({ stores: postgres, fallback: async (_event, { tx }) => tx.query("SELECT 1") });
  // @ts-expect-error -- on SQLite a transaction cannot stay open across an await
  createWebhookHandler({ stores: sqlite, fallback: async () => {} });
  // @ts-expect-error -- on SQLite a transaction cannot stay open across an await
  createWebhookHandler({ stores: sqlite, fallback: "ignore" }).on("buyer.status_changed", async () => {});
}
