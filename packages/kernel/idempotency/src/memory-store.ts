import { option, readOptions, refuseInProduction, type OptionTable } from "@countersign/core/internal";
import { MemoryTable, type MemoryTableOptions } from "./memory-table.ts";
import type { IdempotencyClaim, IdempotencyClaimResult, IdempotencyStore } from "./store.ts";
import { StoreGate } from "./store-rules.ts";
import { TableStore } from "./table-store.ts";

export interface MemoryIdempotencyStoreOptions {
  /** The most keys kept; further ones are refused (503). Default 100,000. */
  readonly max?: number | undefined;
  /** How long a processed key is remembered, in milliseconds. Default 259,200,000 (72 hours): services repeat a webhook for a day. */
  readonly retentionMs?: number | undefined;
  /** Default false: the store forgets with the process, and a retry after that pays again. */
  readonly allowInProduction?: boolean | undefined;
  /** A monotonic clock in milliseconds. Default `performance.now`. */
  readonly now?: (() => number) | undefined;
}

const factoryName = "memoryIdempotencyStore";

export const table: OptionTable<MemoryIdempotencyStoreOptions> = {
  max: option.integer({ min: 1, max: 10_000_000, fallback: 100_000 }),
  retentionMs: option.integer({ min: 1, max: 31_536_000_000, fallback: 259_200_000 }),
  allowInProduction: option.shown(option.boolean(false)),
  now: option.clock(() => performance.now(), "performance.now"),
};

/**
 * Keeps keys for one process: development, tests, and servers whose restart may forget. Synchronous. Throws a TypeError on a bad
 * option, and with NODE_ENV=production unless `allowInProduction` is true.
 */
export function memoryIdempotencyStore(options: MemoryIdempotencyStoreOptions = {}): MemoryIdempotencyStore {
  const read = readOptions(factoryName, table, options);
  const warnInProduction = refuseInProduction(factoryName, read.allowInProduction);
  // Decisions need the time of day; performance.now() begins with the process.
  const originMs = options.now === undefined ? performance.timeOrigin : 0;
  return new MemoryIdempotencyStore({ ...read, originMs, warnInProduction });
}

interface MemoryParts extends MemoryTableOptions {
  readonly retentionMs: number;
  readonly warnInProduction: () => void;
}

/** The keys of one process. Every method returns at once. */
export class MemoryIdempotencyStore extends TableStore<"sync"> implements IdempotencyStore {
  readonly isPrivate = true;
  readonly #warnInProduction: () => void;

  constructor({ retentionMs, warnInProduction, ...options }: MemoryParts) {
    const gate = new StoreGate(factoryName);
    super(new MemoryTable(options), { mode: "sync", retentionMs, gate });
    this.#warnInProduction = warnInProduction;
  }

  override claim(key: string, claim: IdempotencyClaim): IdempotencyClaimResult {
    this.#warnInProduction();
    return super.claim(key, claim);
  }
}
