import { assertFunction, assertKnownOptions, integerOption, optionError } from "@countersign/guard";
import { idempotencyKeys, type IdempotencyKeys } from "@countersign/idempotency-guard";
import type { CreateWebhookHandlerOptions, EventFailure, EventHandler } from "./webhook-handler-types.ts";

/** When a failing event is given up, and who keeps it then. */
export interface DeadLetters {
  readonly maxAttempts: number;
  readonly onDeadLetter: (failure: EventFailure) => unknown;
}

/** Checked options, all present. */
export interface ResolvedWebhookHandlerOptions {
  readonly keys: IdempotencyKeys;
  readonly keyPrefix: string;
  readonly fallback: "ignore" | EventHandler;
  readonly concurrency: number;
  readonly timeoutMs: number;
  /** undefined: a failing event is repeated for as long as the service sends it. */
  readonly deadLetters: DeadLetters | undefined;
  readonly onError: ((failure: EventFailure) => unknown) | undefined;
}

/** The name in messages and notices. */
export const factory = "createWebhookHandler";

const knownOptions: readonly (keyof CreateWebhookHandlerOptions)[] = [
  "store",
  "fallback",
  "retentionHours",
  "concurrency",
  "timeoutMs",
  "leaseMs",
  "storeTimeoutMs",
  "handlerTimeoutMs",
  "recovery",
  "keyPrefix",
  "maxAttempts",
  "onDeadLetter",
  "onError",
];

/** Fills in the defaults; throws a TypeError on a bad option. */
export function resolveWebhookHandlerOptions(
  options: CreateWebhookHandlerOptions,
): ResolvedWebhookHandlerOptions {
  assertKnownOptions(factory, options, knownOptions);
  const { store, leaseMs, storeTimeoutMs, keyPrefix = "webhook-event:", fallback, onError } = options;
  const { recovery = "rerun" } = options;
  const timeoutMs = integerOption(factory, "timeoutMs", options.timeoutMs, {
    min: 1,
    max: 3_600_000,
    fallback: 10_000,
  });
  const handlerTimeoutMs = handlerTimeout(options, timeoutMs);
  const keys = idempotencyKeys({ factory, store, leaseMs, storeTimeoutMs, recovery, handlerTimeoutMs });
  assertRetention(options);
  if (!isKeyPrefix(keyPrefix)) {
    const expected = "1 to 128 characters, no control characters and no lone surrogates";
    throw optionError(factory, "keyPrefix", expected, keyPrefix);
  }
  if (fallback !== "ignore" && typeof fallback !== "function") {
    throw optionError(factory, "fallback", '"ignore" or a function for events without a handler', fallback);
  }
  if (onError !== undefined) assertFunction(factory, "onError", onError);
  return {
    keys,
    keyPrefix,
    fallback,
    concurrency: integerOption(factory, "concurrency", options.concurrency, {
      min: 1,
      max: 1_000,
      fallback: 1,
    }),
    timeoutMs,
    deadLetters: deadLetters(options),
    onError,
  };
}

// Given up before its answer is due, an event could begin a second time beside a handler that is in time.
function handlerTimeout(options: CreateWebhookHandlerOptions, timeoutMs: number): number {
  const handlerTimeoutMs = integerOption(factory, "handlerTimeoutMs", options.handlerTimeoutMs, {
    min: 1_000,
    max: 86_400_000,
    fallback: Math.max(600_000, timeoutMs),
  });
  if (handlerTimeoutMs >= timeoutMs) return handlerTimeoutMs;
  throw optionError(factory, "handlerTimeoutMs", `at least timeoutMs (${timeoutMs})`, handlerTimeoutMs);
}

// In UTF-16 units: with an event_id of 256 and the number of a failure a key has at most 512. A lone surrogate has no UTF-8
// form: in an engine two prefixes could become one.
function isKeyPrefix(keyPrefix: unknown): boolean {
  return (
    typeof keyPrefix === "string" && keyPrefix.length <= 128 && /^[^\p{Cc}\p{Surrogate}]+$/u.test(keyPrefix)
  );
}

const hourMs = 3_600_000;

// A retry that comes after the store has forgotten the event would run it again.
function assertRetention({ store, retentionHours }: CreateWebhookHandlerOptions): void {
  const hours = integerOption(factory, "retentionHours", retentionHours, {
    min: 72,
    max: 876_000,
    fallback: 72,
  });
  const { retentionMs } = store;
  // Undefined and, from a store of somebody's own, null: not known.
  if ((retentionMs ?? Infinity) >= hours * hourMs) return;
  throw new TypeError(
    `${factory}: option store remembers an event for ${retentionMs} ms, which is less than ${hours} hours; ` +
      `create it with retentionMs: ${hours * hourMs} or more`,
  );
}

function deadLetters({ maxAttempts, onDeadLetter }: CreateWebhookHandlerOptions): DeadLetters | undefined {
  if (maxAttempts === undefined && onDeadLetter === undefined) return undefined;
  if (typeof onDeadLetter !== "function") {
    // Without one, the event would be acknowledged and gone.
    throw optionError(
      factory,
      "onDeadLetter",
      "a function that keeps the event, with maxAttempts",
      onDeadLetter,
    );
  }
  // Each known failure is one read of the store.
  return {
    maxAttempts: integerOption(factory, "maxAttempts", maxAttempts, { min: 1, max: 100 }),
    onDeadLetter,
  };
}
