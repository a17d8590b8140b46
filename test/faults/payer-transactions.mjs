// The payout route of a payer whose handler gets the transaction of its key: payoutEndpoint({ stores, pay }).
import { refuse } from "@countersign/idempotency-guard";
import { payoutEndpoint } from "countersign/payout";

export const keyid = "service-1";

/** `times.leaseMs` and `times.pollMs` are the guards' of the other mode. */
export function payoutInTransaction({ publicKey, recovery, times, engine, points }) {
  const { leaseMs: _leaseMs, pollMs: _pollMs, ...waits } = times;
  const { stores, insert } = engine.openTransactions();
  const isSynchronous = stores.transactions.mode === "sync";
  const stop = (point) => (isSynchronous ? points.block(point) : points.reach(point));
  // Past the gate of a handler's statements, which takes no such text.
  const commit = (tx) => stores.transactions.database.query(tx, "COMMIT", []);
  const pay = (payout, { tx, request }) => {
    const fault = request.get("fault");
    if (fault === "refuse") throw refuse("refused", { status: 422 });
    if (fault === "write nothing") return undefined;
    const row = [payout.idempotencyKey, request.signature.nonce, 0, Number(payout.amount.value)];
    if (fault === "leave a statement") return leaveStatement(() => insert(tx, row), isSynchronous);
    const end = () => {
      if (fault === "fail" || fault === "commit, then fail")
        throw new Error("the handler fails as it was told");
      return stop("in pay");
    };
    if (isSynchronous) {
      if (fault === "commit early") stores.transactions.database.exec("COMMIT");
      else insert(tx, row);
      return end();
    }
    if (fault === "commit early") return commit(tx).then(end);
    if (fault === "commit, then fail")
      return insert(tx, row)
        .then(() => commit(tx))
        .then(end);
    return insert(tx, row).then(end);
  };
  return payoutEndpoint({
    addresses: { allow: ["127.0.0.1"] },
    signature: { keys: { [keyid]: publicKey } },
    stores: { ...stores, transactions: withPoints(stores.transactions, { isSynchronous, stop, points }) },
    idempotency: { ...waits, recovery, retryAfterSeconds: 1 },
    pay,
  });
}

/** Fails while a statement is on its way, behind which another one comes. */
function leaveStatement(send, isSynchronous) {
  const sent = send();
  if (isSynchronous) setImmediate(() => void (async () => send())().catch(() => {}));
  else sent.then(send).catch(() => {});
  throw new Error("the handler fails beside its statement");
}

/** The store of transactions, with a point behind each of its steps. */
function withPoints(store, { isSynchronous, stop, points }) {
  const behind = (point, answer) => {
    if (!isSynchronous) return answer.then((value) => stop(point).then(() => value));
    stop(point);
    return answer;
  };
  const steps = {
    async run(work) {
      await points.reach("before BEGIN");
      const result = await store.run(work);
      await points.reach("committed");
      return result;
    },
    begin: (tx, claim) => behind("begun", store.begin(tx, claim)),
    keep: (tx, keys, more) => behind("savepoint released", store.keep(tx, keys, more)),
  };
  return new Proxy(store, {
    get(target, name) {
      if (Object.hasOwn(steps, name)) return steps[name];
      const member = Reflect.get(target, name, target);
      return typeof member === "function" ? member.bind(target) : member;
    },
  });
}
