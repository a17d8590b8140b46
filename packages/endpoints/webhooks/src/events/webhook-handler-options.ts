import { OptionError } from "@countersign/core";
import {
  option,
  optionError,
  readOptions,
  type OptionOwner,
  type OptionTable,
  type ReadOptions,
} from "@countersign/core/door";
import { idempotencyKeys, type IdempotencyKeys } from "@countersign/idempotency";
import { keyRules } from "@countersign/idempotency/door";
import type { CreateWebhookHandlerOptions, EventFailure, EventHandler } from "./webhook-handler-types.ts";

interface DeadLetters {
  readonly maxAttempts: number;
  readonly onDeadLetter: (failure: EventFailure) => unknown;
}

export interface ResolvedWebhookHandlerOptions {
  readonly keys: IdempotencyKeys;
  readonly keyPrefix: string;
  readonly fallback: "ignore" | EventHandler;
  readonly concurrency: number;
  readonly timeoutMs: number;
  /** Undefined: a failing event runs again as long as the service sends it. */
  readonly deadLetters: DeadLetters | undefined;
  readonly onError: ((failure: EventFailure) => unknown) | undefined;
}

export const factoryName = "createWebhookHandler";

const usualKeyPrefix = "webhook-event:";

export const table = {
  store: keyRules.store,
  leaseMs: keyRules.leaseMs,
  storeTimeoutMs: keyRules.storeTimeoutMs,
  fallback: option.own(readFallback),
  retentionHours: option.integer({ min: 72, max: 876_000, fallback: 72 }),
  concurrency: option.integer({ min: 1, max: 1_000, fallback: 1 }),
  timeoutMs: option.integer({ min: 1, max: 3_600_000, fallback: 10_000 }),
  handlerTimeoutMs: option.optional(option.integer({ min: 1_000, max: 86_400_000 }), "600000"),
  recovery: option.oneOf(["hold", "rerun"], "rerun"),
  keyPrefix: option.optional(option.own(readKeyPrefix), JSON.stringify(usualKeyPrefix)),
  // Each known failure is one read of the store.
  maxAttempts: option.optional(option.integer({ min: 1, max: 100 }), "never"),
  onDeadLetter: option.optional(option.own(readDeadLetter), "never"),
  onError: option.optional(option.call<(failure: EventFailure) => unknown>(), "notice or stderr"),
} satisfies OptionTable<CreateWebhookHandlerOptions, unknown>;

type ReadHandlerOptions = ReadOptions<typeof table>;

/** Fills in the defaults; throws an OptionError on a bad option. */
export function resolveWebhookHandlerOptions(
  options: CreateWebhookHandlerOptions,
): ResolvedWebhookHandlerOptions {
  const read = readOptions(factoryName, table, options);
  const { store, keyPrefix = usualKeyPrefix, fallback, concurrency, timeoutMs, onError } = read;
  const { leaseMs, storeTimeoutMs, recovery } = read;
  const handlerTimeoutMs = handlerTimeout(read);
  const own = { factory: factoryName, store, leaseMs, storeTimeoutMs, recovery, handlerTimeoutMs };
  const keys = idempotencyKeys(own);
  assertRetention(read);
  const deadLetters = deadLettersOf(read);
  // Last, when this handler is certain to be made.
  assertOwnKeys(store, keyPrefix, read.keyPrefix !== undefined);
  return { keys, keyPrefix, fallback, concurrency, timeoutMs, deadLetters, onError };
}

// The prefixes of each store's handlers, and whether the option was given.
const prefixesOf = new WeakMap<object, Map<string, boolean>>();

// The service sends each event to every endpoint: what one handler has done would be a duplicate for the other, and acknowledged.
function assertOwnKeys(store: object, keyPrefix: string, isSaid: boolean): void {
  const prefixes = prefixesOf.get(store) ?? new Map<string, boolean>();
  prefixesOf.set(store, prefixes);
  const first = prefixes.get(keyPrefix);
  if (first !== undefined && !(first && isSaid)) {
    throw new OptionError(factoryName, {
      what:
        "this store was given to another handler already, and what one has handled would be a duplicate for the other; " +
        'give each of them an option keyPrefix, for example keyPrefix: "ledger:" and keyPrefix: "mail:"',
    });
  }
  prefixes.set(keyPrefix, isSaid);
}

// An event that is given up before its answer is due could begin again beside a handler that is in time.
function handlerTimeout({
  timeoutMs,
  handlerTimeoutMs = Math.max(600_000, timeoutMs),
}: ReadHandlerOptions): number {
  if (handlerTimeoutMs >= timeoutMs) return handlerTimeoutMs;
  throw optionError(factoryName, "handlerTimeoutMs", `at least timeoutMs (${timeoutMs})`, handlerTimeoutMs);
}

// In UTF-16 units: with an event_id of 256 and the number of a failure a key has at most 512. A lone surrogate has no UTF-8
// form: two prefixes could become one in an engine.
function readKeyPrefix(prefix: unknown, owner: OptionOwner, name: string): string {
  if (typeof prefix === "string" && prefix.length <= 128 && /^[^\p{Cc}\p{Surrogate}]+$/u.test(prefix)) {
    return prefix;
  }
  throw optionError(owner, name, "1 to 128 characters, no control characters and no lone surrogates", prefix);
}

function readFallback(fallback: unknown, owner: OptionOwner, name: string): "ignore" | EventHandler {
  if (fallback === "ignore" || isHandler(fallback)) return fallback;
  throw optionError(owner, name, '"ignore" or a function for events without a handler', fallback);
}

function isHandler(value: unknown): value is EventHandler & DeadLetters["onDeadLetter"] {
  return typeof value === "function";
}

const hourMs = 3_600_000;

// A retry after the store has forgotten the event would run it again.
function assertRetention({ store: { retentionMs }, retentionHours }: ReadHandlerOptions): void {
  // Unknown: undefined, or null from a store of the app's own.
  if ((retentionMs ?? Infinity) >= retentionHours * hourMs) return;
  throw new OptionError(factoryName, {
    option: "store",
    what:
      `remembers an event for ${retentionMs} ms, which is less than ${retentionHours} hours; ` +
      `create it with retentionMs: ${retentionHours * hourMs} or more`,
  });
}

const deadLetterForm = "a function that keeps the event, with maxAttempts";

function readDeadLetter(given: unknown, owner: OptionOwner, name: string): DeadLetters["onDeadLetter"] {
  if (isHandler(given)) return given;
  throw optionError(owner, name, deadLetterForm, given);
}

function deadLettersOf({ maxAttempts, onDeadLetter }: ReadHandlerOptions): DeadLetters | undefined {
  if (maxAttempts === undefined && onDeadLetter === undefined) return undefined;
  // Without one, the event would be acknowledged and gone.
  if (onDeadLetter === undefined) {
    throw optionError(factoryName, "onDeadLetter", deadLetterForm, onDeadLetter);
  }
  if (maxAttempts === undefined) {
    throw optionError(factoryName, "maxAttempts", "an integer from 1 to 100", maxAttempts);
  }
  return { maxAttempts, onDeadLetter };
}
