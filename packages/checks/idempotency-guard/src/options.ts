import { OptionError } from "@countersign/core";
import {
  option,
  optionError,
  readOptions,
  type OptionOwner,
  type OptionTable,
  type ReadOptions,
} from "@countersign/core/internal";
import { keyOptions, transactionOptions, type TransactionOptions } from "@countersign/idempotency/internal";
import type {
  Awaitable,
  IdempotencyStore,
  NoPromise,
  TransactionMode,
  TransactionStores,
  IdempotencyKeysOptions,
} from "@countersign/idempotency";
import { assertCallers } from "./answer-callers.ts";
import { replayTable, type ReplayOptions, type TransactionReplayOptions } from "./replay.ts";

/** Options of {@link idempotencyGuard}; `Native` is the framework's request. */
export interface IdempotencyGuardOptions<Native> extends Pick<
  IdempotencyKeysOptions,
  "store" | "leaseMs" | "storeTimeoutMs" | "recovery" | "retryAfterSeconds"
> {
  /** Returns a request's idempotency key. Anything but a string of 1 to 512 characters, less those of `scope`, is 400. */
  readonly key: (req: Native) => unknown;
  /**
   * Precedes the key in the store, with a colon, so that other routes can use the same keys: 1 to 32 of a-z, 0-9, `-` and `_`.
   * Required on every store but one in memory, since other modules and services can open the same tables or prefix, and where a store is
   * given to more than one guard. Guards with equal scopes share their keys.
   */
  readonly scope?: string | undefined;
  /**
   * Returns what identifies a payload: 1 to 128 printable ASCII characters, a promise within `storeTimeoutMs`. Default: SHA-256 of the
   * bytes captured by rawBody(), the signature guard or captureRawBody, and a configuration error (500) without any.
   */
  readonly fingerprint?: ((req: Native) => Awaitable<string>) | undefined;
  /** How long a duplicate waits for the first attempt, in milliseconds. Default 2,000; 0 answers 503 at once. */
  readonly waitMs?: number | undefined;
  /** How often a waiting process reads the key, in milliseconds, once for all its waiters. Default 100. */
  readonly pollMs?: number | undefined;
  /** How long a handler that never answers keeps its key, in milliseconds. Default 600,000 (ten minutes). */
  readonly handlerTimeoutMs?: number | undefined;
  /** How many duplicates may wait at once; more are 503. Default 1,000. */
  readonly maxWaiters?: number | undefined;
  /** The guarded methods, such as `["POST", "PATCH"]`; others pass without a key. Default: all. */
  readonly methods?: readonly string[] | undefined;
  /** Whether to refuse a request (400) for which `key` returns undefined; otherwise it passes, and runs each time. Default true. */
  readonly required?: boolean | undefined;
  /** The status for a processed key without a kept answer; 200 and 204 have no body, for webhooks. Default 409. */
  readonly doneStatus?: 409 | 200 | 204 | undefined;
  /** The status while the first attempt runs, with Retry-After; 409 for callers that do not read it as "already done". Default 503. */
  readonly inFlightStatus?: 503 | 409 | undefined;
  /** Keeps the first 2xx and repeats it, see {@link ReplayOptions}. Default: not kept. */
  readonly replay?: ReplayOptions | undefined;
  readonly stores?: undefined;
  readonly handle?: undefined;
  /** The status for a processed key with another payload. Default 409. */
  readonly reusedStatus?: 409 | 422 | undefined;
  /** Retry-After while an operator has to decide, in seconds. Default 300. */
  readonly heldRetryAfterSeconds?: number | undefined;
}

/** Options of {@link keyOwner}, whose caller gives key and fingerprint; a done key is 409, one under way 503. */
export type KeyOwnerOptions = Omit<
  IdempotencyGuardOptions<never>,
  RequestOption | "replay" | "stores" | "handle"
>;

/** For messages, notices and stack traces. */
export const factoryName = "idempotencyGuard";

const scopeForm = /^[a-z0-9][a-z0-9_-]{0,31}$/;

// Whether the store's first guard had a scope.
const stores = new WeakMap<object, boolean>();

/** How the guard answers and names keys, in either mode. */
const answerTable = {
  scope: option.optional(option.own(readScope)),
  reusedStatus: option.oneOf([409, 422], 409),
  heldRetryAfterSeconds: option.integer({ min: 1, max: 86_400, fallback: 300 }),
};

const ownerTable = {
  ...keyOptions.rules,
  store: option.shown(keyOptions.rules.store, (store) => ({
    lists: typeof store.list === "function",
    retentionMs: store.retentionMs ?? null,
  })),
  ...answerTable,
  handlerTimeoutMs: option.integer({ min: 1_000, max: 86_400_000, fallback: 600_000 }),
  waitMs: option.integer({ min: 0, max: 60_000, fallback: 2_000 }),
  pollMs: option.integer({ min: 5, max: 10_000, fallback: 100 }),
  maxWaiters: option.integer({ min: 0, max: 1_000_000, fallback: 1_000 }),
} satisfies OptionTable<KeyOwnerOptions, unknown>;

/** Options of a guard whose handler gets the transaction: how keys are named, waited for and answered. */
export type TransactionGuardOptions = TransactionOptions &
  Pick<IdempotencyGuardOptions<never>, "scope" | "reusedStatus" | "heldRetryAfterSeconds">;

/** What only {@link IdempotencyGuardOptions} has. */
export const leaseOptions: readonly string[] = ["store", "leaseMs", "handlerTimeoutMs", "pollMs"];

export const transactionGuardTable = {
  ...transactionOptions.table,
  ...answerTable,
} satisfies OptionTable<TransactionGuardOptions, unknown>;

/** How the guard reads requests and answers duplicates, in either mode. An owner's caller decides that itself. */
const requestTable = {
  key: option.call(),
  fingerprint: option.optional(option.call(), "SHA-256 of the body"),
  methods: option.optional(option.own(readMethods), "all"),
  required: option.boolean(true),
  doneStatus: option.oneOf([409, 200, 204], 409),
  inFlightStatus: option.oneOf([503, 409], 503),
};

const replayRule = option.optional(option.group(replayTable, "none"));

type RequestOption = keyof typeof requestTable;

/** {@link idempotencyGuard} around a handler that gets the transaction of its key. */
export interface IdempotencyTransactionOptions<Native, Tx, Mode extends TransactionMode>
  extends TransactionGuardOptions, Pick<IdempotencyGuardOptions<Native>, RequestOption> {
  /** The app's own database, such as `createStores({ database: fromKnex(knex) })` makes it. */
  readonly stores: TransactionStores<Tx, Mode>;
  /** Commits the first 2xx with its key and repeats it, see {@link ReplayOptions}. Default: not kept. */
  readonly replay?: TransactionReplayOptions<Tx> | undefined;
  /** Writes with `tx`, and returns `answer(status, body)`; without, the answer is an empty 200. May run again. */
  readonly handle: (req: Native, context: { readonly tx: Tx }) => Mode extends "sync" ? NoPromise : unknown;
}

/** Of the form with a transaction. */
export const transactionTable = {
  ...requestTable,
  replay: replayRule,
  ...transactionGuardTable,
  stores: option.own(transactionOptions.readStores<never>),
  handle: option.call(),
} satisfies OptionTable<IdempotencyTransactionOptions<never, never, TransactionMode>, unknown>;

/** The options of either form, by whether there is a transaction; nothing is checked yet. */
export function guardForm<Native>(
  options: object,
):
  | { readonly paid: IdempotencyTransactionOptions<Native, never, TransactionMode> }
  | { readonly handled: IdempotencyGuardOptions<Native> } {
  const givesTransaction = ["stores", "handle"].some(
    (name) => Reflect.get(Object(options), name) !== undefined,
  );
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the form's own table reads and checks each of them
  return (givesTransaction ? { paid: options } : { handled: options }) as ReturnType<
    typeof guardForm<Native>
  >;
}

export const table = {
  ...ownerTable,
  ...requestTable,
  replay: replayRule,
  stores: option.own(() => undefined, "none"),
  handle: option.own(() => undefined, "none"),
} satisfies OptionTable<IdempotencyGuardOptions<never>, unknown>;

export type ResolvedOwnerOptions = ReadOptions<typeof ownerTable> &
  Pick<ReadOptions<typeof requestTable>, "inFlightStatus"> & { readonly factory: string };

export type ResolvedGuardOptions<Native> = Omit<ReadOptions<typeof table>, "key" | "fingerprint"> &
  Pick<IdempotencyGuardOptions<Native>, "key" | "fingerprint"> & { readonly factory: string };

export function resolveOptions<Native extends object>(
  options: IdempotencyGuardOptions<Native>,
  owner: OptionOwner,
): ResolvedGuardOptions<Native> {
  const read = readOptions(owner, table, options);
  keyOptions.assertTimeoutInLease(owner, read);
  assertScoped(owner, read);
  assertCallers(owner, read.replay, options.key);
  // Last, when this guard is certain to be made.
  assertKeysApart(owner, read.scope, read.store);
  const { key, fingerprint } = options;
  return { ...read, factory: factoryName, key, fingerprint };
}

/** As {@link resolveOptions}, without options that read requests. */
export function resolveOwnerOptions(options: KeyOwnerOptions, owner: OptionOwner): ResolvedOwnerOptions {
  const read = readOptions(owner, ownerTable, options);
  keyOptions.assertTimeoutInLease(owner, read);
  assertKeysApart(owner, read.scope, read.store);
  return { ...read, inFlightStatus: 503, factory: factoryName };
}

/**
 * Throws an OptionError for a guard without a scope on a store that others can open too: another module's guard on the same tables or
 * prefix, in this process or another, would have the same keys, and a refund with the number of a paid order would be 409.
 */
export function assertScoped(
  owner: OptionOwner,
  {
    scope,
    store,
  }: { readonly scope: string | undefined; readonly store: Pick<IdempotencyStore, "isPrivate"> },
): void {
  if (scope !== undefined || store.isPrivate === true) return;
  throw new OptionError(owner, {
    option: "scope",
    what:
      "is required, since other guards, modules and services can open the same tables or prefix, and their keys would be the same; " +
      'name what this guard protects, for example scope: "refund"',
  });
}

/** Throws an OptionError unless guards of one store have scopes: else `/refunds` answers 409 to a payout's key. Equal scopes share keys. */
export function assertKeysApart(owner: OptionOwner, scope: string | undefined, store: object): void {
  const first = stores.get(store);
  if (first === undefined) stores.set(store, scope !== undefined);
  else if (!first || scope === undefined) {
    throw new OptionError(owner, {
      what:
        "this store was given to another guard already, and their keys would be the same; " +
        'give each of them an option scope, the first one too, for example scope: "payout" and scope: "refund"',
    });
  }
}

function readScope(scope: unknown, owner: OptionOwner, name: string): string {
  if (typeof scope === "string" && scopeForm.test(scope)) return scope;
  throw optionError(owner, name, "1 to 32 lower-case letters, digits, - and _", scope);
}

const methodForm = /^[A-Z]+$/;

function readMethods(value: unknown, owner: OptionOwner, name: string): ReadonlySet<string> {
  if (Array.isArray(value) && value.length > 0 && value.every((method) => methodForm.test(String(method)))) {
    return new Set(value.map(String));
  }
  throw optionError(owner, name, 'a non-empty array of methods in upper case, such as ["POST"]', value);
}
