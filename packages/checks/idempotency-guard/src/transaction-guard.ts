import { readOptions, type OptionOwner } from "@countersign/core/internal";
import type { TransactionMode } from "@countersign/idempotency";
import { transactionOptions } from "@countersign/idempotency/internal";
import type { KeptAnswer } from "./answer-record.ts";
import {
  bodyFingerprint,
  isGuarded,
  keyGuard,
  readKey,
  type KeyGuard,
  type WhileConnected,
} from "./check.ts";
import {
  assertScoped,
  factoryName,
  guardForm,
  leaseOptions,
  transactionTable,
  type IdempotencyTransactionOptions,
} from "./options.ts";
import { reserves409 } from "./refusals.ts";
import { assertAnswersInTransaction } from "./replay.ts";
import { transactionOwner, type TransactionOwner } from "./transaction-owner.ts";

/** Runs handlers in the transactions of their keys, read from a framework's requests. Made by {@link transactionGuard}. */
export interface TransactionGuard<Native> extends Pick<TransactionOwner<never>, "drain"> {
  /**
   * The answer to send, or that the request is exempt by `methods` or `required`. Rejects as {@link TransactionOwner.pay}. `around`
   * runs the handler, each time.
   */
  admit(
    this: void,
    native: Native,
    whileConnected: WhileConnected,
    around?: (handle: () => unknown) => unknown,
  ): Promise<{ readonly answer: KeptAnswer } | { readonly passes: true }>;
  /** Whether only a done key may be answered 409. */
  readonly reserved: boolean;
}

/** The guard for an adapter, of either form; `isPaid` with a transaction. Throws an OptionError on a bad option, in the name of `owner`. */
export function requestGuard<Native extends object>(
  options: object,
  owner: OptionOwner,
): KeyGuard<Native> & { readonly isPaid: boolean } {
  const form = guardForm<Native>(options);
  return "paid" in form
    ? { isPaid: true, ...transactionGuard(form.paid, owner) }
    : { isPaid: false, ...keyGuard(form.handled, owner) };
}

/** Throws an OptionError on a bad option, in the name of `owner`. */
export function transactionGuard<Native extends object>(
  options: IdempotencyTransactionOptions<Native, never, TransactionMode>,
  owner: OptionOwner = factoryName,
): TransactionGuard<Native> {
  transactionOptions.readStores(options.stores, owner, "stores");
  transactionOptions.assertNoLeaseOptions(owner, options, leaseOptions);
  const {
    stores,
    methods,
    required,
    doneStatus,
    inFlightStatus,
    replay,
    handle: _handle,
    key: _key,
    fingerprint: _own,
    ...guard
  } = readOptions(owner, transactionTable, options);
  const { key: keyOf, fingerprint: fingerprintOf = bodyFingerprint } = options;
  const { handle }: { handle: (req: Native, context: { readonly tx: never }) => unknown } = options;
  transactionOptions.assertInMode(stores, handle, owner, "handle");
  assertAnswersInTransaction(owner, replay, stores);
  assertScoped(owner, { scope: guard.scope, store: stores.idempotency });
  const { pay, drain } = transactionOwner(stores, guard, owner, { doneStatus, inFlightStatus, replay });
  const reserved = reserves409({ doneStatus, inFlightStatus });
  return {
    async admit(native, whileConnected, around = (run) => run()) {
      if (!isGuarded(native, methods)) return { passes: true };
      const key = readKey(() => keyOf(native), reserved);
      if (key === undefined && !required) return { passes: true };
      const attempt = { key, fingerprint: () => fingerprintOf(native) };
      const answer = await pay(native, attempt, whileConnected, (_tx, context) =>
        around(() => handle(native, context)),
      );
      return { answer };
    },
    drain,
    reserved,
  };
}
