import { randomUUID } from "node:crypto";
import { setTimeout as wait } from "node:timers/promises";
import { idempotentRoute } from "@countersign/fetch";
import { idempotencyKeys, memoryAnswerStore, memoryIdempotencyStore } from "@countersign/idempotency";
import { idempotencyGuard, retryLater } from "@countersign/idempotency-guard";
import { rawBody } from "@countersign/raw-body";
import { withPostgresTransaction } from "@countersign/store-postgres";
import { answered, noticed, post, refusalOf, row, notice } from "./provoke.mjs";

const by = ["idempotencyGuard", "payoutEndpoint"];
const keys = ["idempotencyGuard", "payoutEndpoint", "createWebhookHandler"];

const paid = (_req, res) => void res.json({});
/** A route behind the guard. */
const route =
  (options = {}, handler = paid, before = rawBody()) =>
  (app) => {
    const store = memoryIdempotencyStore();
    const guard = idempotencyGuard({
      store,
      key: (req) => req.headers["idempotency-key"],
      retryAfterSeconds: 1,
      waitMs: 50,
      ...options,
    });
    app.post("/", before, guard, handler);
  };
const keyed = (more = {}) =>
  post({ headers: { "Idempotency-Key": "payout-1.funding-1.business-1", ...more.headers }, ...more.rest });
/** `store` with other methods in the place of some of its own. */
const instead = (store, methods) =>
  new Proxy(store, {
    get: (target, name) =>
      methods[name] ?? (typeof target[name] === "function" ? target[name].bind(target) : target[name]),
  });
const down = (store, method) =>
  instead(store, { [method]: () => Promise.reject(new Error("connect ECONNREFUSED 127.0.0.1:5432")) });

/** A store of answers of which one method fails. */
const lost = (method) => down(memoryAnswerStore(), method);

/** An owned key of a store whose methods `change` replaces, with short times. */
async function owned({ change = (store) => store, options = {} } = {}) {
  const plain = memoryIdempotencyStore();
  const owner = idempotencyKeys({
    factory: "idempotencyGuard",
    store: change(plain),
    leaseMs: 1000,
    storeTimeoutMs: 300,
    ...options,
  });
  const key = await owner.acquire({
    key: "payout-1.funding-1.business-1",
    fingerprint: "f",
    token: randomUUID(),
  });
  return { key, store: plain, owner };
}

export const refusalsOfKeys = {
  "already-processed": row(
    409,
    by,
    "The key is done with this payload: the payout is paid.",
    "None: the caller stops. This is how a retry of a paid payout ends.",
    "The same payout twice:",
    answered(route(), [keyed(), keyed()]),
  ),
  "idempotency-key-reused": row(
    409,
    by,
    "The key is done with another payload. `reusedStatus: 422` changes the status. Also a notice, because one of the two payments may be a mistake.",
    "The caller uses a new key for each new payment.",
    "Another amount under a key that was paid:",
    answered(route(), [keyed(), keyed({ rest: { body: "{}" } })]),
  ),
  "in-flight": row(
    503,
    by,
    "The first attempt at this key still runs after `waitMs`, or more than `maxWaiters` requests already wait.",
    "Retry after Retry-After. If it is frequent, handlers take longer than the sender waits. After a crash it lasts until the dead process's lease ends (`leaseMs`); then `recovery` decides.",
    "A retry while the handler works for longer than `waitMs`:",
    answered(
      route({ waitMs: 20, pollMs: 10 }, (_req, res) => void setTimeout(() => res.json({}), 1500)),
      [],
      { twice: keyed() },
    ),
  ),
  "handler-without-response": row(
    500,
    ["idempotentRoute", "payoutRoute"],
    "The handler of a fetch route ended without an answer: it returned nothing, or an object that is no Response. It may have paid, so the key is held.",
    "Return a Response on every path, or throw. An operator decides about the held key, as for `held`.",
    "A handler without `return`:",
    () =>
      refusalOf("idempotencyGuard", async () => {
        let refused;
        const options = {
          store: memoryIdempotencyStore(),
          key: () => "payout-1.funding-1.business-1",
          onReject: (error) => void (refused = error),
        };
        const request = new Request("https://platform.example/", { method: "POST", body: "{}" });
        await idempotentRoute(options, () => {})(request);
        throw refused;
      }),
  ),
  "retry-later": row(
    503,
    by,
    "The handler threw `retryLater(reason)`: it says that nothing has happened. The key is free under both recoveries.",
    "None: the caller comes again after Retry-After. The reason is in the log.",
    "A handler that asks to come again:",
    answered(
      route({}, (_req, _res, next) => next(retryLater("the bank opens at eight"))),
      [keyed()],
    ),
  ),
  held: row(
    503,
    by,
    "The first attempt may have taken effect (recovery `hold`, the guard's default): its process died while the handler ran, the handler threw, responded 5xx, 408, 425 or 429, or called `hold()` and failed, a response that it had begun failed, or somebody else ended the response. The reason says which. Money may have moved, or a delivery may have been handled. An operator has to decide. Also a notice.",
    "A payment: look at the bank and at your own payouts. Anything else: look at what the handler writes. Then `countersign keys resolve`: [operate](../guide/operate.md#held-payments). Where a second run does no harm, take recovery `rerun`: [webhooks of others](../guide/other-webhooks.md#when-the-process-dies).",
    "A handler that had said `hold()` and then failed, and a retry:",
    answered(
      route({}, (req, _res, next) => {
        req.idempotency.hold("the bank did not answer");
        next(new Error("time-out"));
      }),
      [keyed(), keyed()],
    ),
  ),
  "answer-unavailable": row(
    503,
    ["idempotencyGuard"],
    "With `replay`: the key is done, and the store of answers does not respond. Any other answer would look final to the caller.",
    "Repair the store. The caller retries, and nothing runs twice.",
    "A store of answers that is down when the same request comes again:",
    answered(route({ replay: { answers: lost("find") } }), [keyed(), keyed()]),
  ),
  "idempotency-store-unavailable": row(
    503,
    keys,
    "The store threw, did not answer within `storeTimeoutMs`, or is full. In one transaction: of answers, for `replay`.",
    "Repair the store. The caller retries, and nothing is lost.",
    "A database that is down:",
    answered(route({ store: down(memoryIdempotencyStore(), "claim") }), keyed()),
  ),
  "idempotency-lost": row(
    503,
    keys,
    "This attempt no longer owns the key: another attempt took it over, an operator decided, or it is done. `completeIn` throws this error, and the handler's signal aborts with it.",
    "Let the error through: the transaction rolls back, and the caller retries.",
    "`completeIn` of an attempt whose key somebody has resolved:",
    () =>
      refusalOf("idempotencyGuard", async () => {
        const sqlite = await import("@countersign/store-sqlite");
        const { default: Database } = await import("libsql");
        const database = new Database(":memory:");
        const stores = sqlite.createSqliteStores({ database });
        const owner = idempotencyKeys({ factory: "idempotencyGuard", store: stores.idempotency });
        const key = await owner.acquire({
          key: "payout-1.funding-1.business-1",
          fingerprint: "f",
          token: randomUUID(),
        });
        await key.complete();
        try {
          sqlite.withImmediateTransaction(database, (tx) => key.completeIn(tx));
        } finally {
          stores.close();
          database.close();
        }
      }),
  ),
  draining: row(
    503,
    keys,
    "`drain()` was called: the process is shutting down.",
    "None: another process, or this one after its restart, takes the retry.",
    "A payout that comes after `drain()`:",
    answered((app) => {
      const guard = idempotencyGuard({
        store: memoryIdempotencyStore(),
        key: (req) => req.headers["idempotency-key"],
      });
      void guard.drain();
      app.post("/", rawBody(), guard, paid);
    }, keyed()),
  ),
  "idempotency-key-missing": row(
    400,
    by,
    "The option `key` finds no key in the request.",
    "The caller sends one, or `key` reads another place of the request. Names in `req.headers` are in lower case.",
    "No `Idempotency-Key`, where `key` reads that field:",
    answered(route(), post()),
  ),
  "idempotency-key-invalid": row(
    400,
    by,
    "The key is not a string, is longer than 512 characters with its scope, or has invisible characters: controls, zero-width characters, spaces other than U+0020, text that is not in NFC.",
    "The caller sends a key of visible characters.",
    "A key of 600 characters:",
    answered(route(), keyed({ headers: { "Idempotency-Key": "k".repeat(600) } })),
  ),
  "fingerprint-missing": row(
    500,
    by,
    "No body was captured, so the guard cannot tell two payloads of one key apart.",
    "Mount `rawBody()` or the signature check before the guard, or set the option `fingerprint`.",
    "No `rawBody()` in front:",
    answered(
      route({}, paid, (_req, _res, next) => next()),
      keyed(),
    ),
  ),
  "fingerprint-invalid": row(
    500,
    by,
    "The option `fingerprint` did not return 1 to 128 ASCII characters.",
    "Return a digest as text.",
    "It gives an object:",
    answered(route({ fingerprint: () => ({}) }), keyed()),
  ),
  "fingerprint-unavailable": row(
    503,
    by,
    "The promise of the option `fingerprint` took longer than `storeTimeoutMs`.",
    "Repair it; the retry runs.",
    "A promise that never settles:",
    answered(route({ fingerprint: () => new Promise(() => {}), storeTimeoutMs: 100 }), keyed()),
  ),
  "idempotency-guard-twice": row(
    500,
    ["idempotencyGuard"],
    "Two idempotency guards run for one request; each would store the other's answer.",
    "Mount one guard.",
    "The same guard twice:",
    answered((app) => {
      const guard = idempotencyGuard({
        store: memoryIdempotencyStore(),
        key: (req) => req.headers["idempotency-key"],
      });
      app.post("/", rawBody(), guard, guard, paid);
    }, keyed()),
  ),
  "transaction-not-begun": row(
    503,
    ["withPostgresTransaction"],
    "The pool gave no connection in time, or BEGIN failed. Nothing has happened.",
    "Enlarge the pool, shorten the transactions, or repair the server.",
    "A pool that gives no connection:",
    () =>
      refusalOf("payoutEndpoint", () =>
        withPostgresTransaction(
          { connect: () => Promise.reject(new Error("timeout exceeded when trying to connect")) },
          () => Promise.resolve(),
        ),
      ),
  ),
};

export const noticesOfKeys = {
  "answer-not-kept": notice(
    ["idempotencyGuard"],
    "With `replay`: a key is done, and its answer was not kept. The store failed, the answer exceeds `limit`, its status is not one that is kept, or the body of a fetch route had not ended after half of `leaseMs`. The retry gets `doneStatus`. In one transaction a store that fails pays nothing instead (503).",
    "Repair the store, or raise `limit`.",
    "A store of answers that is down:",
    noticed("answer-not-kept", () =>
      answered(route({ replay: { answers: lost("keep") } }), [keyed(), keyed()])(),
    ),
  ),
  "answer-unreadable": notice(
    ["idempotencyGuard"],
    "With `replay`: the kept answer cannot be read. It was changed, or encrypted under a key that `encryptionKeys` no longer has. The retry gets `doneStatus`.",
    "Keep an old key in `encryptionKeys` as long as the store keeps answers.",
    "A record that is none:",
    noticed("answer-unreadable", () => {
      const answers = instead(memoryAnswerStore(), { find: () => Buffer.from("?") });
      return answered(route({ replay: { answers } }), [keyed(), keyed()])();
    }),
  ),
  "answered-before-handler": notice(
    ["idempotencyGuard"],
    "Other code, such as a time-out of the app, answered while the key was being claimed. No handler begins, and the key is given back.",
    "None, unless it is frequent: then the app's time-out is too short for the store.",
    "An app that answers at once, and a claim that takes longer:",
    noticed("answered-before-handler", () =>
      answered(
        (app) => {
          const store = memoryIdempotencyStore();
          const slow = instead(store, {
            claim: async (...claim) => {
              await wait(50);
              return store.claim(...claim);
            },
          });
          app.use((_req, res, next) => {
            setTimeout(() => res.status(504).end(), 10);
            next();
          });
          route({ store: slow })(app);
        },
        keyed(),
        { refused: false },
      )().then(() => wait(200)),
    ),
  ),
  "answer-unsendable": notice(
    ["idempotencyGuard", "signResponse", "digestResponse"],
    "Node refused to send an answer that had been held back. The caller got 500 instead, or a cut connection where that was refused too.",
    "Look at the error: often a header field with a line feed, or a reason with other characters than Latin-1. A payment stands; the retry gets 409.",
    "A header field with a line feed:",
    noticed("answer-unsendable", () =>
      answered(
        route({}, (_req, res) => void res.writeHead(200, { "X-Note": "line\nfeed" }).end("paid")),
        keyed(),
        { refused: false },
      )(),
    ),
  ),
  "completion-delayed": notice(
    keys,
    "The handler succeeded, and the store did not record it. The caller got 503. The guard repeats the record in the background, with heartbeats, for an hour.",
    "Repair the store. Do not free the key by hand.",
    "A store that goes down between payment and record:",
    noticed("completion-delayed", async () => {
      const { key } = await owned({ change: (store) => down(store, "complete") });
      await key.complete();
    }),
  ),
  "completion-lost": notice(
    keys,
    "The handler succeeded, but its key was taken or decided meanwhile: another attempt may pay or has paid too.",
    "Look at both payments. With `completeIn` the loser has rolled back. A key that an operator had released, and that no retry has, is held again under `hold`: decide anew.",
    "An operator had resolved the key meanwhile:",
    noticed("completion-lost", async () => {
      const { key } = await owned({ change: (store) => instead(store, { complete: () => "lost" }) });
      await key.complete();
    }),
  ),
  "commit-not-confirmed": notice(
    keys,
    "The handler succeeded, but its `completeIn` never committed: a savepoint around it was rolled back, or `completeIn` came after the 2xx. The key is held.",
    "Find out whether the payment was made, then resolve the key. Call `completeIn` outside of savepoints, and answer 2xx after the COMMIT.",
    "A `completeIn` whose savepoint was undone:",
    noticed("commit-not-confirmed", async () => {
      const { createSqliteStores } = await import("@countersign/store-sqlite");
      const { default: Database } = await import("libsql");
      const database = new Database(":memory:");
      const stores = createSqliteStores({ database });
      const owner = idempotencyKeys({ factory: "idempotencyGuard", store: stores.idempotency });
      const key = await owner.acquire({
        key: "payout-1.funding-1.business-1",
        fingerprint: "f",
        token: randomUUID(),
      });
      database.exec("BEGIN IMMEDIATE; SAVEPOINT inner_part");
      key.completeIn(database);
      database.exec("ROLLBACK TO inner_part; COMMIT");
      await key.complete();
      stores.close();
      database.close();
    }),
  ),
  "success-before-commit": notice(
    keys,
    "The handler ended with success first and called `completeIn` afterwards. `completeIn` threw, so the transaction rolls back. The key may be done although nothing was paid; each retry is then 409.",
    "Find out whether the payment was made. If not, pay by hand, because the service got a success. Answer 2xx after the COMMIT.",
    "A `completeIn` after the record:",
    noticed("success-before-commit", async () => {
      const { key } = await owned({ change: (store) => instead(store, { completeIn: () => "ok" }) });
      await key.complete();
      try {
        key.completeIn({});
      } catch {
        // Lost: the transaction rolls back.
      }
    }),
  ),
  "hold-lost": notice(
    keys,
    "A key that should have been held was taken or decided meanwhile: one payment may have happened, and another may follow.",
    "Look at both payments at once. A key that an operator had released, and that no retry has, is held again: decide anew.",
    "Somebody had decided about the key before:",
    noticed("hold-lost", async () => {
      const { key } = await owned({ change: (store) => instead(store, { hold: () => "lost" }) });
      await key.hold("the bank may have paid");
    }),
  ),
  "settlement-abandoned": notice(
    keys,
    "The store has not recorded the end of this key for an hour. Now `recovery` decides: under `hold` an operator, under `rerun` the next attempt.",
    "Repair the store; look at the payment.",
    undefined,
    undefined,
  ),
  "lease-lost": notice(
    keys,
    "While the handler runs, its key was taken by another attempt or decided by an operator. The handler's signal aborts.",
    "Begin no effect once the signal has aborted. If it is frequent, the store is slow or the process pauses for longer than a lease.",
    "A heartbeat that is told so:",
    noticed("lease-lost", async () => {
      const { key } = await owned({ change: (store) => instead(store, { heartbeat: () => "lost" }) });
      void key.signal;
    }),
  ),
  "lease-expired": notice(
    keys,
    "The store did not answer for a whole lease while the handler runs. The handler's signal aborts.",
    "Repair the store, or raise `leaseMs`.",
    "Heartbeats that do not reach the store:",
    noticed("lease-expired", async () => {
      await owned({ change: (store) => down(store, "heartbeat") });
    }),
  ),
  "handler-timeout": notice(
    keys,
    "A handler has not ended within `handlerTimeoutMs`, ten minutes by default. Its lease runs out, and `recovery` decides.",
    "Find out where it hangs. On Express 4 an async handler that rejects hangs for ever: call `next(error)`.",
    "A handler that never answers:",
    noticed("handler-timeout", async () => {
      await owned({ options: { handlerTimeoutMs: 1000 } });
    }),
  ),
};
