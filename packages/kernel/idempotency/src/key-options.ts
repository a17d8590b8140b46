import { OptionError } from "@countersign/core";
import {
  assertFunction,
  option,
  optionError,
  readOptions,
  type OptionOwner,
  type OptionTable,
  type ReadOptions,
} from "@countersign/core/internal";
import type { IdempotencyStore } from "./store.ts";

export interface IdempotencyKeysOptions {
  readonly factory: string;
  /** Where the keys are kept, shared by all processes. */
  readonly store: IdempotencyStore;
  /** How long a silent owner keeps the key, in milliseconds; a living one renews it. Default 30,000. */
  readonly leaseMs?: number | undefined;
  /** The longest call of the store, in milliseconds; shorter than the lease. Default 2,000. */
  readonly storeTimeoutMs?: number | undefined;
  /**
   * For a key whose owner fell silent. `hold`: an operator decides. `rerun`: the next attempt runs with a higher fence; safe for a
   * handler that does no harm when it runs twice, such as a call of a bank that refuses duplicates. Default `hold`.
   */
  readonly recovery?: "hold" | "rerun" | undefined;
  /** When an owner that settles nothing stops renewing its lease, in milliseconds. Default: never. */
  readonly handlerTimeoutMs?: number | undefined;
  /** Retry-After of thrown errors, in seconds. Default 5. */
  readonly retryAfterSeconds?: number | undefined;
  /** Called for each key that this process settled or gave up. Must not throw. */
  readonly onSettled?: ((key: string) => void) | undefined;
}

const handlerTimeoutMs = option.integer({ min: 1_000, max: 86_400_000 });

/** The option rules shared by every receiver of keys. */
export const keyRules = {
  store: option.own(readStore),
  leaseMs: option.integer({ min: 1_000, max: 3_600_000, fallback: 30_000 }),
  storeTimeoutMs: option.integer({ min: 1, max: 60_000, fallback: 2_000 }),
  recovery: option.oneOf(["hold", "rerun"], "hold"),
  handlerTimeoutMs: option.own(
    (value, owner, name) => (value === undefined ? Infinity : handlerTimeoutMs.read(value, owner, name)),
    "none",
  ),
  retryAfterSeconds: option.integer({ min: 1, max: 86_400, fallback: 5 }),
} satisfies OptionTable<Omit<IdempotencyKeysOptions, "factory" | "onSettled">, unknown>;

/** How a receiver of keys reads its options. */
export const keyOptions = { rules: keyRules, assertTimeoutInLease };

export const table = {
  ...keyRules,
  factory: option.own(readFactory),
  onSettled: option.optional(option.call<(key: string) => void>(), "none"),
} satisfies OptionTable<IdempotencyKeysOptions, unknown>;

export type ResolvedKeyOptions = ReadOptions<typeof table>;

export function resolveKeyOptions(options: IdempotencyKeysOptions): ResolvedKeyOptions {
  const owner = readFactory(options?.factory);
  const resolved = readOptions(owner, table, options);
  assertTimeoutInLease(owner, resolved);
  return resolved;
}

/** A claim longer than its own lease could hand out a key that another attempt owns. */
function assertTimeoutInLease(
  owner: OptionOwner,
  { storeTimeoutMs, leaseMs }: Pick<ResolvedKeyOptions, "storeTimeoutMs" | "leaseMs">,
): void {
  if (storeTimeoutMs < leaseMs) return;
  throw optionError(owner, "storeTimeoutMs", `below leaseMs (${leaseMs})`, storeTimeoutMs);
}

function readFactory(name: unknown): string {
  if (typeof name === "string" && name !== "") return name;
  throw optionError("idempotencyKeys", "factory", "the name of the receiver", name);
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

function readStore(store: unknown, owner: OptionOwner, name: string): IdempotencyStore {
  if (typeof store !== "object" || store === null) {
    throw optionError(owner, name, "an IdempotencyStore, for example memoryIdempotencyStore()", store);
  }
  if (!("claim" in store) && "idempotency" in store) {
    throw new OptionError(owner, { option: name, what: "is given all stores: give it their .idempotency" });
  }
  for (const method of storeMethods) assertFunction(owner, `${name}.${method}`, Reflect.get(store, method));
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- it has the methods; what they answer is checked on use
  return store as IdempotencyStore;
}
