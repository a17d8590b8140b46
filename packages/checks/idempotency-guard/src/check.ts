import { readOptions, type OptionOwner } from "@countersign/core/internal";
import type { Awaitable, TransactionMode } from "@countersign/idempotency";
import { transactionOptions } from "@countersign/idempotency/internal";
import {
  assertScoped,
  factoryName,
  guardForm,
  leaseOptions,
  resolveOptions,
  transactionTable,
  type IdempotencyGuardOptions,
  type IdempotencyTransactionOptions,
} from "./options.ts";
import { assertCallers } from "./answer-callers.ts";
import type { Handling, KeyedRequest } from "./keyed-request.ts";
import {
  leaseRequests,
  transactionRequests,
  type Duplicates,
  type Performance,
  type Drainable,
} from "./perform-request.ts";
import { reserves409 } from "./refusals.ts";
import { assertAnswersInTransaction } from "./replay.ts";
import { bodyFingerprint, isGuarded, readKey } from "./request-key.ts";

/** Owns the keys of a framework's requests, in either mode. Made by {@link keyGuard}. */
export interface KeyGuard<Native> extends Drainable {
  /** Whether the handler of the options gets the transaction of its key. Otherwise the handler follows the guard. */
  readonly givesTransaction: boolean;
  /** As `perform` of RequestOwner; `passes` for a request that is exempt by `methods` or `required`. */
  perform(this: void, native: Native, handling: Handling): Promise<Performance | { readonly passes: true }>;
  /** Whether only a done key may be answered 409. */
  readonly reserved: boolean;
}

/** The guard for an adapter, of either form. Throws an OptionError on a bad option, in the name of `owner`. */
export function keyGuard<Native extends object>(
  options: object,
  owner: OptionOwner = factoryName,
): KeyGuard<Native> {
  const form = guardForm<Native>(options);
  return "paid" in form ? transactionGuard(form.paid, owner) : leaseGuard(form.handled, owner);
}

function leaseGuard<Native extends object>(
  options: IdempotencyGuardOptions<Native>,
  owner: OptionOwner,
): KeyGuard<Native> {
  const resolved = resolveOptions(options, owner);
  const { perform, drain } = leaseRequests(resolved, resolved);
  return guardOf(resolved, resolved, {
    givesTransaction: false,
    drain,
    perform,
  });
}

function transactionGuard<Native extends object>(
  options: IdempotencyTransactionOptions<Native, never, TransactionMode>,
  owner: OptionOwner,
): KeyGuard<Native> {
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
  const { handle, key, fingerprint }: GuardedHandler<Native> = options;
  transactionOptions.assertInMode(stores, handle, owner, "handle");
  assertAnswersInTransaction(owner, replay, stores);
  assertScoped(owner, { scope: guard.scope, store: stores.idempotency });
  assertCallers(owner, replay, key);
  const duplicates = { doneStatus, inFlightStatus, replay };
  const { perform, drain } = transactionRequests(stores, guard, owner, duplicates);
  return guardOf({ key, fingerprint, methods, required }, duplicates, {
    givesTransaction: true,
    drain,
    perform: (native, request, handling) =>
      perform(native, { ...request, handle: (context) => handle(native, context) }, handling),
  });
}

interface ReadsRequests<Native> {
  readonly key: (req: Native) => unknown;
  readonly fingerprint?: ((req: Native) => Awaitable<string>) | undefined;
}

interface GuardedHandler<Native> extends ReadsRequests<Native> {
  readonly handle: (req: Native, context: { readonly tx: never }) => unknown;
}

interface Guarding<Native> extends Pick<KeyGuard<Native>, "givesTransaction" | "drain"> {
  readonly perform: (native: Native, request: KeyedRequest, handling: Handling) => Promise<Performance>;
}

/** Reads the key of each request that is guarded. */
function guardOf<Native extends object>(
  {
    key: keyOf,
    fingerprint: fingerprintOf = bodyFingerprint,
    methods,
    required,
  }: ReadsRequests<Native> & {
    readonly methods: ReadonlySet<string> | undefined;
    readonly required: boolean;
  },
  duplicates: Duplicates,
  { perform, ...guarding }: Guarding<Native>,
): KeyGuard<Native> {
  const reserved = reserves409(duplicates);
  return {
    ...guarding,
    reserved,
    async perform(native, handling) {
      if (!isGuarded(native, methods)) return { passes: true };
      const key = readKey(() => keyOf(native), reserved);
      if (key === undefined && !required) return { passes: true };
      return perform(native, { key, fingerprint: () => fingerprintOf(native) }, handling);
    },
  };
}
