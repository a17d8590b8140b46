import {
  assertFunction,
  assertKnownOptions,
  integerOption,
  optionError,
  type GuardRequest,
} from "@countersign/guard";
import { bodyFingerprint } from "./fingerprint.ts";
import { resolveKeyOptions, type ResolvedKeyOptions } from "./key-options.ts";
import { checkScope } from "./scope.ts";
import type { Awaitable, IdempotencyStore } from "./store.ts";

/** Options of {@link idempotencyGuard}. */
export interface IdempotencyGuardOptions {
  /** Where the keys are kept, shared by every process that serves the route. */
  readonly store: IdempotencyStore;
  /** Returns the idempotency key of a request. Anything but a string of 1 to 512 characters, less those of `scope`, is 400. */
  readonly key: (req: GuardRequest) => unknown;
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
  readonly fingerprint?: ((req: GuardRequest) => Awaitable<string>) | undefined;
  /** For how long a silent owner keeps the key, in milliseconds. A living owner renews it. Default 30,000. */
  readonly leaseMs?: number | undefined;
  /** For how long a duplicate waits for the first attempt, in milliseconds. Default 2,000; 0 answers 503 at once. */
  readonly waitMs?: number | undefined;
  /** How often a waiting process reads the key, in milliseconds; one reader for all its waiters. Default 100. */
  readonly pollMs?: number | undefined;
  /**
   * What happens to a key whose owner fell silent. `hold`: an operator decides. `rerun`: the next attempt runs, with a higher
   * fence; safe where the handler uses completeIn() or the bank rail refuses duplicates. Default `hold`.
   */
  readonly recovery?: "hold" | "rerun" | undefined;
  /** How long one call of the store may take, in milliseconds; shorter than the lease. Default 2,000. */
  readonly storeTimeoutMs?: number | undefined;
  /** For how long a handler that never answers keeps its key, in milliseconds. Default 600,000 (ten minutes). */
  readonly handlerTimeoutMs?: number | undefined;
  /** How many duplicates may wait at the same time; more are answered with 503 at once. Default 1,000. */
  readonly maxWaiters?: number | undefined;
  /** The status for a processed key that comes with another payload. Default 409. */
  readonly reusedStatus?: 409 | 422 | undefined;
  /** Retry-After of a 503, in seconds. Default 5. */
  readonly retryAfterSeconds?: number | undefined;
  /** Retry-After while an operator has to decide, in seconds. Default 300. */
  readonly heldRetryAfterSeconds?: number | undefined;
}

/** Checked options, all present. */
export interface ResolvedOptions extends ResolvedKeyOptions {
  readonly key: (req: GuardRequest) => unknown;
  readonly scope: string | undefined;
  readonly fingerprint: (req: GuardRequest) => Awaitable<string>;
  readonly waitMs: number;
  readonly pollMs: number;
  readonly maxWaiters: number;
  readonly reusedStatus: 409 | 422;
  readonly heldRetryAfterSeconds: number;
}

/** The name in messages, notices and stack traces. */
export const factory = "idempotencyGuard";

const knownOptions: readonly (keyof IdempotencyGuardOptions)[] = [
  "store",
  "key",
  "scope",
  "fingerprint",
  "leaseMs",
  "waitMs",
  "pollMs",
  "recovery",
  "storeTimeoutMs",
  "handlerTimeoutMs",
  "maxWaiters",
  "reusedStatus",
  "retryAfterSeconds",
  "heldRetryAfterSeconds",
];

/** Fills in the defaults; throws a TypeError on a bad option. */
export function resolveOptions(options: IdempotencyGuardOptions): ResolvedOptions {
  assertKnownOptions(factory, options, knownOptions);
  const { key, fingerprint = bodyFingerprint, reusedStatus = 409, handlerTimeoutMs = 600_000 } = options;
  const { store, scope, leaseMs, storeTimeoutMs, recovery, retryAfterSeconds } = options;
  const keys = { factory, store, leaseMs, storeTimeoutMs, recovery, handlerTimeoutMs, retryAfterSeconds };
  const resolvedKeys = resolveKeyOptions(keys);
  assertFunction(factory, "key", key);
  assertFunction(factory, "fingerprint", fingerprint);
  if (![409, 422].includes(reusedStatus)) {
    throw optionError(factory, "reusedStatus", "409 or 422", reusedStatus);
  }
  const integers = {
    waitMs: integer(options, "waitMs", 0, 60_000, 2_000),
    pollMs: integer(options, "pollMs", 5, 10_000, 100),
    maxWaiters: integer(options, "maxWaiters", 0, 1_000_000, 1_000),
    heldRetryAfterSeconds: integer(options, "heldRetryAfterSeconds", 1, 86_400, 300),
  };
  // Last, when this guard is certain to be made.
  checkScope(factory, scope, store);
  return {
    ...resolvedKeys,
    ...integers,
    key,
    scope,
    fingerprint,
    reusedStatus,
  };
}

function integer(
  options: IdempotencyGuardOptions,
  name: "waitMs" | "pollMs" | "maxWaiters" | "heldRetryAfterSeconds",
  min: number,
  max: number,
  fallback: number,
): number {
  return integerOption(factory, name, options[name], { min, max, fallback });
}
