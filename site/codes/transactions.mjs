import { GuardError } from "@countersign/core";
import { memoryNonceStore } from "@countersign/http-signature-verify";
import { memoryIdempotencyStore } from "@countersign/idempotency";
import { idempotencyGuard } from "@countersign/idempotency-guard";
import { transactionBroken } from "@countersign/idempotency/store";
import { payoutEndpoint } from "countersign/payout";
import { payoutRequest, payouts } from "./bodies.mjs";
import { answered, keyid, publicKey, row } from "./provoke.mjs";

const by = ["idempotencyGuard", "payoutEndpoint", "createWebhookHandler"];

/** Stores on an engine of which `change` is different. */
function storesOn(change) {
  const engine = {
    engine: "sketch",
    mode: "async",
    retentionMs: 86_400_000,
    run: (work) => work({}),
    begin: (_tx, { keys }) => ({ nonce: "fresh", keys: keys.map(() => ({ status: "begun" })) }),
    keep: () => undefined,
    assertOpen: () => undefined,
    free: () => undefined,
    hold: (keys, _reason, tx) => new Set(tx === undefined ? [] : keys.map(({ key }) => key)),
    written: () => 1,
    faultOf: () => undefined,
  };
  return {
    idempotency: memoryIdempotencyStore(),
    nonces: memoryNonceStore(),
    transactions: { ...engine, ...change },
  };
}

/** What the request of a guard gets whose handler is `handle`, on an engine that counts no change. */
export function handledOn(handle) {
  const guard = { key: () => "order-1", fingerprint: () => "f", scope: "orders", handle };
  return answered(
    (app) => {
      app.post("/api/v1/transaction", idempotencyGuard({ ...guard, stores: storesOn({ written: () => 0 }) }));
    },
    payoutRequest,
    { refused: false },
  );
}

/** What a payout gets of an engine on which `change` fails. */
function paidOn(change, { pay = (_payout, { tx }) => tx, ...idempotency } = {}) {
  return answered((app) => {
    const options = {
      signature: { keys: { [keyid]: publicKey } },
      idempotency,
      stores: storesOn(change),
      pay,
    };
    app.post("/api/v1/transaction", payoutEndpoint(payouts(options)));
  }, payoutRequest);
}

const lost = () => Promise.reject(new Error("Connection terminated unexpectedly"));

export const refusalsOfTransactions = {
  "handler-answered-409": row(
    500,
    ["idempotencyGuard", "payoutEndpoint"],
    "The handler, `key` or `fingerprint` refused with 409, or the handler threw a refusal with a status below 400. The caller would take that for “paid”. The answer became a 500, and the key is free. Also a notice.",
    'Refuse a conflict of your own with another 4xx, such as `throw refuse("already-booked", { status: 422 })`.',
    "A `pay` that throws a refusal with 409:",
    paidOn(
      {},
      {
        pay() {
          throw new GuardError({ status: 409, code: "already-booked", message: "the row is there" });
        },
      },
    ),
  ),
  "transaction-unavailable": row(
    503,
    by,
    "No transaction that may write began within `storeTimeoutMs` and `waitMs`, or its connection was lost before COMMIT. Nothing was written.",
    "Repair the database, connect to its primary, enlarge the pool, or shorten the transactions. The caller retries.",
    "A database that is down:",
    paidOn({ run: lost, faultOf: () => "unavailable" }),
  ),
  "transaction-conflict": row(
    503,
    by,
    "The database rolled the transaction back because of others, ten times: a serialization failure, a deadlock, or a lock that took longer than `waitMs`. Nothing was written.",
    "Write rows in the same order everywhere, and shorten the transactions: [lock order](../concepts/transactions.md#the-order-of-locks). The caller retries.",
    "A serialization failure each time:",
    paidOn({
      run: () => Promise.reject(new Error("could not serialize access due to concurrent update")),
      faultOf: () => "conflict",
    }),
  ),
  "transaction-timed-out": row(
    503,
    by,
    "The handler did not end within `transactionTimeoutMs`. It is rolled back when it ends, or when the database ends the idle transaction; duplicates are 503 `in-flight` until then.",
    "Look for what `pay` waits for: a promise that never settles, a call to somebody else, a slow statement. Make it shorter, or raise `transactionTimeoutMs`. The caller retries.",
    "A handler that waits for ever:",
    paidOn({}, { transactionTimeoutMs: 100, pay: () => new Promise(() => {}) }),
  ),
  "commit-unknown": row(
    503,
    by,
    "COMMIT was sent, and its reply was lost, or did not come within `transactionTimeoutMs`. On MariaDB also: a statement that the handler did not await met a deadlock right before COMMIT. The payout and its key are both written, or neither is. Of events and tasks also a notice.",
    "None: the caller retries, and gets 409 if it was paid; otherwise the retry pays. Repair the connection, and await every statement. If no retry comes, look for the payment.",
    "A connection that is lost during COMMIT:",
    paidOn({ run: (work) => work({}).then(lost) }),
  ),
  "nothing-written": row(
    503,
    ["payoutEndpoint"],
    "`pay` returned, and had changed no row by its `tx`: a statement without `await` or `execute()` was never sent, or went by the pool or the outer client. The payout is not confirmed, and its key is held for an operator, because what went by another connection may have committed. Also a notice.",
    "Look for a missing `await` and for statements that do not go by `tx`. Then look whether the payout was made, and decide about the key. If `pay` may write nothing: `mayWriteNothing: true`.",
    "A `pay` that forgets its statement:",
    paidOn({ written: () => 0 }),
  ),
  "transaction-held": row(
    503,
    by,
    "The handler failed or met a conflict, and its transaction was rolled back; but something of it had committed before, as by its own COMMIT or a change of a table's definition, or has stayed in a table without transactions, such as one of MyISAM on MariaDB. Its key is held for an operator: neither is the request refused for good, nor is the handler run again. Of events also a notice.",
    "Look what was written, and decide about the key. Send no COMMIT and change no table's definition in a handler. On MariaDB make its tables with `ENGINE = InnoDB`; the cause in the log says so.",
    "A handler that refuses after something of it has committed:",
    paidOn(
      { hold: (keys) => new Set(keys.map(({ key }) => key)) },
      {
        pay() {
          throw new GuardError({ status: 400, code: "account-frozen", message: "the account is frozen" });
        },
      },
    ),
  ),
  "transaction-unknown": row(
    503,
    by,
    "The handler failed or met a conflict, and its transaction was rolled back; then the store did not answer the question whether something of it had committed before, as by the handler's own COMMIT. The key is free, as after every rollback, or done although the handler has failed. Also a notice.",
    "Repair the store, then look at the key by `countersign keys show`. If it is done, a retry gets 409: look what was written, and make the payout by hand if it is missing.",
    "A handler that refuses while its database goes down:",
    paidOn(
      { hold: lost },
      {
        pay() {
          throw new GuardError({ status: 400, code: "account-frozen", message: "the account is frozen" });
        },
      },
    ),
  ),
  "transaction-broken": row(
    500,
    by,
    "The handler left a transaction that cannot commit what it wrote: it caught the error of a statement and went on, did not await one that failed, or ended the transaction itself. It is rolled back. If it had ended before, on MariaDB also by a deadlock, later statements may have committed by themselves: then the key is held. Of events and tasks also a notice.",
    "Await every statement and let its error through, or put what may fail into a nested transaction of your library. `tx` takes no BEGIN, COMMIT or ROLLBACK: send none past it either.",
    "A handler that goes on after a failed statement:",
    paidOn({
      keep() {
        throw transactionBroken("it went on after a statement had failed; let the error through");
      },
    }),
  ),
};
