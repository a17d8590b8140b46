import { OptionError } from "@countersign/core";
import {
  option,
  optionError,
  readOptions,
  type OptionOwner,
  type OptionTable,
  type ReadOptions,
} from "@countersign/core/internal";
import type { TransactionMode } from "@countersign/idempotency";
import { keyOptions, LeaseOwner, transactionOptions } from "@countersign/idempotency/internal";
import type {
  CreateWebhookHandlerOptions,
  DeadLetterHook,
  EventFailure,
  EventHandler,
  TransactionHandlerOptions,
} from "./webhook-handler-types.ts";

interface DeadLetters {
  readonly maxAttempts: number;
  readonly onDeadLetter: DeadLetterHook;
}

export interface ResolvedWebhookHandlerOptions {
  readonly owner: LeaseOwner;
  readonly keyPrefix: string;
  readonly recovery: "hold" | "rerun";
  readonly fallback: "ignore" | EventHandler;
  readonly concurrency: number;
  readonly timeoutMs: number;
  /** Undefined: a failing event runs again as long as the service sends it. */
  readonly deadLetters: DeadLetters | undefined;
  readonly onError: ((failure: EventFailure) => unknown) | undefined;
}

export const factoryName = "createWebhookHandler";

const ownKeys = { factory: factoryName, option: "keyPrefix" } as const;

const usualKeyPrefix = "webhook-event:";

/** Of whatever handles events. */
export const handlerRules = {
  fallback: option.own(readFallback),
  onError: option.optional(option.call<(failure: EventFailure) => unknown>(), "notice or stderr"),
};

/** Of either form. */
const commonTable = {
  ...handlerRules,
  retentionHours: option.integer({ min: 72, max: 876_000, fallback: 72 }),
  keyPrefix: option.optional(option.own(readKeyPrefix), JSON.stringify(usualKeyPrefix)),
};

/** Of the form with transactions. */
export const transactionHandlerTable = {
  ...commonTable,
  ...transactionOptions.table,
  recovery: option.oneOf(["hold", "rerun"], "rerun"),
  onDeadLetter: option.optional(option.call<DeadLetterHook>(), "an alarm"),
  stores: option.own(transactionOptions.readStores<never>),
} satisfies OptionTable<TransactionHandlerOptions<never, TransactionMode>, unknown>;

/** Reads the options of the form with transactions. Throws an OptionError. */
export function resolveTransactionHandlerOptions(
  options: object,
): ReadOptions<typeof transactionHandlerTable> & { readonly keyPrefix: string } {
  transactionOptions.readStores(Reflect.get(options, "stores"), factoryName, "stores");
  transactionOptions.assertNoLeaseOptions(factoryName, options, leaseOptions);
  const read = readOptions(factoryName, transactionHandlerTable, options);
  const { stores, keyPrefix = usualKeyPrefix, retentionHours } = read;
  assertRetention({ store: stores.transactions, retentionHours }, "stores");
  assertOwnKeys({ ...ownKeys, store: stores.idempotency }, keyPrefix, read.keyPrefix !== undefined);
  return { ...read, keyPrefix };
}

const leaseOptions: readonly string[] = [
  "store",
  "leaseMs",
  "concurrency",
  "timeoutMs",
  "handlerTimeoutMs",
  "maxAttempts",
];

export const table = {
  ...commonTable,
  store: keyOptions.rules.store,
  leaseMs: keyOptions.rules.leaseMs,
  storeTimeoutMs: keyOptions.rules.storeTimeoutMs,
  concurrency: option.integer({ min: 1, max: 1_000, fallback: 1 }),
  timeoutMs: option.integer({ min: 1, max: 3_600_000, fallback: 10_000 }),
  handlerTimeoutMs: option.optional(option.integer({ min: 1_000, max: 86_400_000 }), "600000"),
  recovery: option.oneOf(["hold", "rerun"], "rerun"),
  // Each known failure is one read of the store.
  maxAttempts: option.optional(option.integer({ min: 1, max: 100 }), "never"),
  onDeadLetter: option.optional(option.own(readDeadLetter), "never"),
} satisfies OptionTable<CreateWebhookHandlerOptions, unknown>;

type ReadHandlerOptions = ReadOptions<typeof table>;

/** Fills in the defaults; throws an OptionError on a bad option. */
export function resolveWebhookHandlerOptions(options: object): ResolvedWebhookHandlerOptions {
  const read = readOptions(factoryName, table, options);
  const { store, keyPrefix = usualKeyPrefix, fallback, concurrency, timeoutMs, onError } = read;
  const { leaseMs, storeTimeoutMs, recovery } = read;
  const handlerTimeoutMs = handlerTimeout(read);
  const own = { factory: factoryName, store, leaseMs, storeTimeoutMs, recovery, handlerTimeoutMs };
  keyOptions.assertTimeoutInLease(factoryName, read);
  // An event that another attempt has is `busy` at once: the service sends it again.
  const unused = { waitMs: 0, maxWaiters: 0, pollMs: 1_000, retryAfterSeconds: 5 };
  const owner = new LeaseOwner({ ...own, ...unused });
  assertRetention(read);
  const deadLetters = deadLettersOf(read);
  // Last, when this handler is certain to be made.
  assertOwnKeys({ ...ownKeys, store }, keyPrefix, read.keyPrefix !== undefined);
  return { owner, keyPrefix, recovery, fallback, concurrency, timeoutMs, deadLetters, onError };
}

// The prefixes of each store's handlers, and whether the option was given.
const prefixesOf = new WeakMap<object, Map<string, boolean>>();

interface SharedStore {
  readonly factory: string;
  readonly option: "keyPrefix" | "name";
  readonly store: object;
}

// The service sends each event to every endpoint: what one handler has done would be a duplicate for the other, and acknowledged.
export function assertOwnKeys(
  { factory, option: name, store }: SharedStore,
  keyPrefix: string,
  isSaid: boolean,
): void {
  const prefixes = prefixesOf.get(store) ?? new Map<string, boolean>();
  prefixesOf.set(store, prefixes);
  const first = prefixes.get(keyPrefix);
  if (first !== undefined && !(first && isSaid)) {
    const [ledger, mail] = name === "name" ? ["ledger", "mail"] : ["ledger:", "mail:"];
    throw new OptionError(factory, {
      what:
        "this store was given to another handler already, and what one has handled would be a duplicate for the other; " +
        `give each of them an option ${name}, for example ${name}: "${ledger}" and ${name}: "${mail}"`,
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

function isHandler(value: unknown): value is EventHandler & DeadLetterHook {
  return typeof value === "function";
}

const hourMs = 3_600_000;

// A retry after the store has forgotten the event would run it again.
function assertRetention(
  {
    store: { retentionMs },
    retentionHours,
  }: { readonly store: { readonly retentionMs?: number | undefined }; readonly retentionHours: number },
  name = "store",
): void {
  // Unknown: undefined, or null from a store of the app's own.
  if ((retentionMs ?? Infinity) >= retentionHours * hourMs) return;
  throw new OptionError(factoryName, {
    option: name,
    what:
      `remembers an event for ${retentionMs} ms, which is less than ${retentionHours} hours; ` +
      `create it with retentionMs: ${retentionHours * hourMs} or more`,
  });
}

const deadLetterForm = "a function that keeps the event, with maxAttempts";

function readDeadLetter(given: unknown, owner: OptionOwner, name: string): DeadLetterHook {
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
