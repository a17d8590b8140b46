import { assertFunction, integerOption, optionError } from "@countersign/guard";
import type { IdempotencyStore } from "./store.ts";

/** Options of {@link idempotencyKeys}. */
export interface IdempotencyKeysOptions {
  /** The name that messages and notices begin with: that of the receiver's own factory. */
  readonly factory: string;
  /** Where the keys are kept. */
  readonly store: IdempotencyStore;
  /** For how long a silent owner keeps the key, in milliseconds. A living owner renews it. Default 30,000. */
  readonly leaseMs?: number | undefined;
  /** How long one call of the store may take, in milliseconds; shorter than the lease. Default 2,000. */
  readonly storeTimeoutMs?: number | undefined;
  /** What a claim does with a key whose owner fell silent, see `IdempotencyClaim`. Default `hold`. */
  readonly recovery?: "hold" | "rerun" | undefined;
  /** After how long an owner that settles nothing stops renewing its lease, in milliseconds. Default: never. */
  readonly handlerTimeoutMs?: number | undefined;
  /** Retry-After of the errors that are thrown, in seconds. Default 5. */
  readonly retryAfterSeconds?: number | undefined;
  /** Hears of each key that this process has settled, or given up. Must not throw. */
  readonly onSettled?: ((key: string) => void) | undefined;
}

/** Checked options, all present. */
export interface ResolvedKeyOptions {
  readonly factory: string;
  readonly store: IdempotencyStore<unknown>;
  readonly leaseMs: number;
  readonly storeTimeoutMs: number;
  readonly recovery: "hold" | "rerun";
  readonly handlerTimeoutMs: number;
  readonly retryAfterSeconds: number;
  readonly onSettled: (key: string) => void;
}

/** Fills in the defaults; throws a TypeError on a bad option. */
export function resolveKeyOptions(options: IdempotencyKeysOptions): ResolvedKeyOptions {
  const { factory, store, recovery = "hold", onSettled = nobody } = options;
  assertStore(factory, store);
  assertFunction(factory, "onSettled", onSettled);
  if (!["hold", "rerun"].includes(recovery)) {
    throw optionError(factory, "recovery", '"hold" or "rerun"', recovery);
  }
  const leaseMs = integerOption(factory, "leaseMs", options.leaseMs, {
    min: 1_000,
    max: 3_600_000,
    fallback: 30_000,
  });
  return {
    factory,
    store,
    recovery,
    onSettled,
    leaseMs,
    storeTimeoutMs: storeTimeout(options, leaseMs),
    handlerTimeoutMs:
      options.handlerTimeoutMs === undefined
        ? Infinity
        : integerOption(factory, "handlerTimeoutMs", options.handlerTimeoutMs, {
            min: 1_000,
            max: 86_400_000,
          }),
    retryAfterSeconds: integerOption(factory, "retryAfterSeconds", options.retryAfterSeconds, {
      min: 1,
      max: 86_400,
      fallback: 5,
    }),
  };
}

// A claim that may take longer than its own lease could hand out a key that somebody else owns already.
function storeTimeout(options: IdempotencyKeysOptions, leaseMs: number): number {
  const storeTimeoutMs = integerOption(options.factory, "storeTimeoutMs", options.storeTimeoutMs, {
    min: 1,
    max: 60_000,
    fallback: 2_000,
  });
  if (storeTimeoutMs < leaseMs) return storeTimeoutMs;
  throw optionError(options.factory, "storeTimeoutMs", `below leaseMs (${leaseMs})`, storeTimeoutMs);
}

const storeMethods = [
  "claim",
  "read",
  "heartbeat",
  "complete",
  "release",
  "hold",
  "resolve",
  "prune",
  "close",
] as const;

function assertStore(factory: string, store: unknown): void {
  if (typeof store !== "object" || store === null) {
    throw optionError(factory, "store", "an IdempotencyStore, for example memoryIdempotencyStore()", store);
  }
  for (const method of storeMethods) {
    const found: unknown = Reflect.get(store, method);
    if (typeof found !== "function") throw optionError(factory, `store.${method}`, "a function", found);
  }
  const completeIn: unknown = Reflect.get(store, "completeIn");
  if (completeIn !== undefined) assertFunction(factory, "store.completeIn", completeIn);
}

function nobody(): void {}
