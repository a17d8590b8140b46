import { option, readOptions, refuseInProduction, type OptionTable } from "@countersign/core/internal";
import type { Awaitable } from "./store.ts";

/**
 * Keeps the answers of done keys, to repeat them. An answer is kept before its key is done, or in its transaction, under its attempt's
 * token, and found by the done record's token: another attempt's answer is never found. Without an answer the key stays done. Methods throw
 * without the engine.
 */
export interface AnswerStore<Tx = never> {
  /** One word for traces, such as `postgresql`. Default `other`. */
  readonly engine?: string | undefined;
  /** How long an answer is kept, in milliseconds; undefined if unknown. */
  readonly retentionMs?: number | undefined;
  /** Keeps an attempt's answer, durable once it resolves; replaces an earlier one. Takes any token of 1 to 512 characters, any bytes. */
  keep(token: string, answer: Uint8Array): Awaitable<void>;
  /** What `keepIn` takes transactions of: the very object that `TransactionStore.database` is. */
  readonly database?: object | undefined;
  /** As `keep`, in the caller's transaction: found once that commits. Throws without an open one. Absent on engines without transactions. */
  keepIn?(tx: Tx, token: string, answer: Uint8Array): Awaitable<void>;
  /** The very bytes; undefined without any, or past their retention. */
  find(token: string): Awaitable<Uint8Array | undefined>;
  /** Removes answers past their retention. Returns how many. */
  prune(): Awaitable<number>;
  /** Frees the store's own timers and connections. Later calls throw. */
  close(): Awaitable<void>;
}

/** Keeps answers in the transactions of their keys. Made on the same `database` as the stores of these. */
export interface TransactionAnswerStore<Tx> extends AnswerStore<Tx> {
  readonly database: object;
  keepIn(tx: Tx, token: string, answer: Uint8Array): Awaitable<void>;
}

export interface MemoryAnswerStoreOptions {
  /** The most answers kept; further ones are refused. Default 10,000. */
  readonly max?: number | undefined;
  /** How long an answer is kept, in milliseconds. Default 259,200,000 (72 hours), as long as `memoryIdempotencyStore` remembers its key. */
  readonly retentionMs?: number | undefined;
  /** Default false: the store forgets with the process, and shares nothing. */
  readonly allowInProduction?: boolean | undefined;
  /** A monotonic clock in milliseconds. Default `performance.now`. */
  readonly now?: (() => number) | undefined;
}

const factoryName = "memoryAnswerStore";

export const answersTable: OptionTable<MemoryAnswerStoreOptions> = {
  max: option.integer({ min: 1, max: 10_000_000, fallback: 10_000 }),
  retentionMs: option.integer({ min: 1, max: 31_536_000_000, fallback: 259_200_000 }),
  allowInProduction: option.boolean(false),
  now: option.clock(() => performance.now(), "performance.now"),
};

/**
 * Keeps answers for one process: development, tests, and servers whose restart may forget. Synchronous. Throws a TypeError on a bad
 * option, and with NODE_ENV=production unless `allowInProduction` is true.
 */
export function memoryAnswerStore(options: MemoryAnswerStoreOptions = {}): MemoryAnswerStore {
  const read = readOptions(factoryName, answersTable, options);
  refuseInProduction(factoryName, read.allowInProduction);
  return new MemoryAnswerStore(read);
}

interface Entry {
  readonly answer: Buffer;
  readonly untilMs: number;
}

export class MemoryAnswerStore implements AnswerStore {
  readonly engine = "memory";
  readonly retentionMs: number;
  readonly #max: number;
  readonly #now: () => number;
  /** By end: each is put last when kept. */
  readonly #entries = new Map<string, Entry>();
  #closed = false;

  constructor({ max, retentionMs, now }: { max: number; retentionMs: number; now: () => number }) {
    this.retentionMs = retentionMs;
    this.#max = max;
    this.#now = now;
  }

  keep(token: string, answer: Uint8Array): void {
    this.#assertOpen();
    const isKnown = this.#entries.delete(token);
    if (!isKnown && this.#entries.size >= this.#max) this.prune();
    if (this.#entries.size >= this.#max)
      throw new Error(`the memory answer store is full (${this.#max} answers)`);
    // The caller may reuse the bytes.
    this.#entries.set(token, { answer: Buffer.from(answer), untilMs: this.#now() + this.retentionMs });
  }

  find(token: string): Buffer | undefined {
    this.#assertOpen();
    const entry = this.#entries.get(token);
    return entry === undefined || entry.untilMs <= this.#now() ? undefined : Buffer.from(entry.answer);
  }

  prune(): number {
    this.#assertOpen();
    const nowMs = this.#now();
    let pruned = 0;
    for (const [token, { untilMs }] of this.#entries) {
      if (untilMs > nowMs) break;
      this.#entries.delete(token);
      pruned += 1;
    }
    return pruned;
  }

  close(): void {
    this.#closed = true;
    this.#entries.clear();
  }

  #assertOpen(): void {
    if (this.#closed) throw new Error("the memory answer store has been closed");
  }
}
