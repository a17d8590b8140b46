import { GuardError } from "@countersign/core";
import { memoryNonceStore } from "@countersign/http-signature-verify";
import { memoryIdempotencyStore } from "@countersign/idempotency";
import { idempotencyGuard } from "@countersign/idempotency-guard";
import { transactionBroken } from "@countersign/idempotency/store";
import { payoutEndpoint } from "countersign/payout";
import { payoutRequest, payouts } from "./bodies.mjs";
import { answered, keyid, publicKey } from "./provoke.mjs";

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
  "handler-answered-409": paidOn(
    {},
    {
      pay() {
        throw new GuardError({ status: 409, code: "already-booked", message: "the row is there" });
      },
    },
  ),
  "transaction-unavailable": paidOn({ run: lost, faultOf: () => "unavailable" }),
  "transaction-conflict": paidOn({
    run: () => Promise.reject(new Error("could not serialize access due to concurrent update")),
    faultOf: () => "conflict",
  }),
  "transaction-timed-out": paidOn({}, { transactionTimeoutMs: 100, pay: () => new Promise(() => {}) }),
  "commit-unknown": paidOn({ run: (work) => work({}).then(lost) }),
  "nothing-written": paidOn({ written: () => 0 }),
  "transaction-held": paidOn(
    { hold: (keys) => new Set(keys.map(({ key }) => key)) },
    {
      pay() {
        throw new GuardError({ status: 400, code: "account-frozen", message: "the account is frozen" });
      },
    },
  ),
  "transaction-unknown": paidOn(
    { hold: lost },
    {
      pay() {
        throw new GuardError({ status: 400, code: "account-frozen", message: "the account is frozen" });
      },
    },
  ),
  "transaction-broken": paidOn({
    keep() {
      throw transactionBroken("it went on after a statement had failed; let the error through");
    },
  }),
};
