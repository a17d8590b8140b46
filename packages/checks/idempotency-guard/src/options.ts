import { OptionError } from "@countersign/core";
import {
  option,
  optionError,
  readOptions,
  type OptionOwner,
  type OptionTable,
  type ReadOptions,
} from "@countersign/core/door";
import { assertTimeoutInLease, keyRules, type ResolvedKeyOptions } from "@countersign/idempotency/door";
import type { Awaitable, IdempotencyKeysOptions } from "@countersign/idempotency";
import { replayTable, type ReplayOptions } from "./replay.ts";

/** Options of {@link idempotencyGuard}. `Native` is the request of the framework. */
export interface IdempotencyGuardOptions<Native> extends Pick<
  IdempotencyKeysOptions,
  "store" | "leaseMs" | "storeTimeoutMs" | "recovery" | "retryAfterSeconds"
> {
  /** Returns the idempotency key of a request. Anything but a string of 1 to 512 characters, less those of `scope`, is 400. */
  readonly key: (req: Native) => unknown;
  /**
   * Stands before the key in the store, with a colon, so that other routes can have the same keys: 1 to 32 lower-case letters,
   * digits, `-` and `_`. Default none. Required where a store is given to more than one guard.
   */
  readonly scope?: string | undefined;
  /**
   * Returns what tells one payload from another: 1 to 128 printable ASCII characters. Default: SHA-256 of the bytes that
   * rawBody(), the signature guard or captureRawBody captured, and a configuration error (500) when none did. A promise is due
   * within `storeTimeoutMs`.
   */
  readonly fingerprint?: ((req: Native) => Awaitable<string>) | undefined;
  /** For how long a duplicate waits for the first attempt, in milliseconds. Default 2,000; 0 answers 503 at once. */
  readonly waitMs?: number | undefined;
  /** How often a waiting process reads the key, in milliseconds; one reader for all its waiters. Default 100. */
  readonly pollMs?: number | undefined;
  /** For how long a handler that never answers keeps its key, in milliseconds. Default 600,000 (ten minutes). */
  readonly handlerTimeoutMs?: number | undefined;
  /** How many duplicates may wait at the same time; more are answered with 503 at once. Default 1,000. */
  readonly maxWaiters?: number | undefined;
  /** The methods whose requests are guarded, such as `["POST", "PATCH"]`; others pass without a key. Default: all. */
  readonly methods?: readonly string[] | undefined;
  /** Whether a request for which `key` returns undefined is refused (400); otherwise it passes, and runs each time it comes. Default true. */
  readonly required?: boolean | undefined;
  /** The status for a processed key whose answer is not given again; 200 and 204 have no body, for webhooks. Default 409. */
  readonly doneStatus?: 409 | 200 | 204 | undefined;
  /** The status while the first attempt runs, with Retry-After. 409 for callers that do not take it for "already done". Default 503. */
  readonly inFlightStatus?: 503 | 409 | undefined;
  /** Keeps the first 2xx and answers with it again, see {@link ReplayOptions}. Default: it is not kept. */
  readonly replay?: ReplayOptions | undefined;
  /** The status for a processed key that comes with another payload. Default 409. */
  readonly reusedStatus?: 409 | 422 | undefined;
  /** Retry-After while an operator has to decide, in seconds. Default 300. */
  readonly heldRetryAfterSeconds?: number | undefined;
}

/** Options of {@link keyOwner}, whose caller gives each key and fingerprint; a done key is 409. */
export type KeyOwnerOptions = Omit<
  IdempotencyGuardOptions<never>,
  "key" | "fingerprint" | "methods" | "required" | "doneStatus" | "replay"
>;

/** The name in messages, notices and stack traces. */
export const factoryName = "idempotencyGuard";

const scopeForm = /^[a-z0-9][a-z0-9_-]{0,31}$/;

// Whether the guard that was given this store first had a scope.
const stores = new WeakMap<object, boolean>();

const ownerTable = {
  ...keyRules,
  store: option.shown(keyRules.store, (store) => ({
    lists: typeof store.list === "function",
    retentionMs: store.retentionMs ?? null,
  })),
  scope: option.optional(option.own(readScope)),
  handlerTimeoutMs: option.integer({ min: 1_000, max: 86_400_000, fallback: 600_000 }),
  waitMs: option.integer({ min: 0, max: 60_000, fallback: 2_000 }),
  pollMs: option.integer({ min: 5, max: 10_000, fallback: 100 }),
  maxWaiters: option.integer({ min: 0, max: 1_000_000, fallback: 1_000 }),
  inFlightStatus: option.oneOf([503, 409], 503),
  reusedStatus: option.oneOf([409, 422], 409),
  heldRetryAfterSeconds: option.integer({ min: 1, max: 86_400, fallback: 300 }),
} satisfies OptionTable<KeyOwnerOptions, unknown>;

export const table = {
  ...ownerTable,
  key: option.call(),
  fingerprint: option.optional(option.call(), "SHA-256 of the body"),
  methods: option.optional(option.own(readMethods), "all"),
  required: option.boolean(true),
  doneStatus: option.oneOf([409, 200, 204], 409),
  replay: option.optional(option.group(replayTable, "none")),
} satisfies OptionTable<IdempotencyGuardOptions<never>, unknown>;

/** {@link KeyOwnerOptions}, checked, all present. */
export type ResolvedOwnerOptions = ReadOptions<typeof ownerTable> & Pick<ResolvedKeyOptions, "factory">;

/** {@link IdempotencyGuardOptions}, checked, all present. */
export type ResolvedGuardOptions<Native> = Omit<ReadOptions<typeof table>, "key" | "fingerprint"> &
  Pick<IdempotencyGuardOptions<Native>, "key" | "fingerprint"> &
  Pick<ResolvedKeyOptions, "factory">;

/** Fills in the defaults; throws an OptionError on a bad option. */
export function resolveOptions<Native extends object>(
  options: IdempotencyGuardOptions<Native>,
  owner: OptionOwner,
): ResolvedGuardOptions<Native> {
  const read = readOptions(owner, table, options);
  assertConsistent(owner, read);
  const { key, fingerprint } = options;
  return { ...read, factory: factoryName, key, fingerprint };
}

/** As {@link resolveOptions}, without the options that read requests. */
export function resolveOwnerOptions(options: KeyOwnerOptions, owner: OptionOwner): ResolvedOwnerOptions {
  const read = readOptions(owner, ownerTable, options);
  assertConsistent(owner, read);
  return { ...read, factory: factoryName };
}

function assertConsistent(
  owner: OptionOwner,
  read: Pick<ResolvedOwnerOptions, "leaseMs" | "scope" | "store" | "storeTimeoutMs">,
): void {
  assertTimeoutInLease(owner, read);
  // Last, when this guard is certain to be made.
  assertKeysApart(owner, read.scope, read.store);
}

/**
 * Sees to it that guards of one store have a scope each: without it `/refunds` would answer 409 to the key of a payout, and never
 * run. Two guards of the same scope share their keys because they say so. Throws an OptionError.
 */
function assertKeysApart(owner: OptionOwner, scope: string | undefined, store: object): void {
  const first = stores.get(store);
  if (first === undefined) stores.set(store, scope !== undefined);
  else if (!first || scope === undefined) {
    throw new OptionError(owner, {
      what:
        "this store was given to another guard already, and their keys would be the same; " +
        'give each of them an option scope, for example scope: "payout" and scope: "refund"',
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
