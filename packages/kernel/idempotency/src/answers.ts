import { option, readOptions, refuseInProduction, type OptionTable } from "@countersign/core/door";
import type { Awaitable } from "./store.ts";

/**
 * Keeps the answers of done keys, to give them again. An answer is kept before its key is done, under the token of its attempt, and found
 * by the token of the done record: what another attempt left is never found, and a missing answer leaves the key done. A method that
 * cannot reach the engine throws.
 */
export interface AnswerStore {
  /** What it is on, one word for traces, such as `postgresql`. Default `other`. */
  readonly engine?: string | undefined;
  /** For how long an answer is kept, in milliseconds. Undefined when the store does not know. */
  readonly retentionMs?: number | undefined;
  /**
   * Keeps the answer of an attempt from when this resolves. Kept again under the same token it takes the earlier one's place. Takes
   * any string of 1 to 512 characters as it is, and any bytes.
   */
  keep(token: string, answer: Uint8Array): Awaitable<void>;
  /** The very bytes; undefined when there are none, or their retention has ended. */
  find(token: string): Awaitable<Uint8Array | undefined>;
  /** Removes answers whose retention has ended. Returns how many. */
  prune(): Awaitable<number>;
  /** Frees timers and connections of the store itself. A later call throws. */
  close(): Awaitable<void>;
}

/** Options of {@link memoryAnswerStore}. */
export interface MemoryAnswerStoreOptions {
  /** How many answers are kept at most; a further one is refused. Default 10,000. */
  readonly max?: number | undefined;
  /** For how long an answer is kept, in milliseconds. Default 86,400,000 (24 hours). */
  readonly retentionMs?: number | undefined;
  /** Default false: what the store knows is gone with the process, and unknown to others. */
  readonly allowInProduction?: boolean | undefined;
  /** A monotonic clock in milliseconds. Default `performance.now`. */
  readonly now?: (() => number) | undefined;
}

const factoryName = "memoryAnswerStore";

export const answersTable: OptionTable<MemoryAnswerStoreOptions> = {
  max: option.integer({ min: 1, max: 10_000_000, fallback: 10_000 }),
  retentionMs: option.integer({ min: 1, max: 31_536_000_000, fallback: 86_400_000 }),
  allowInProduction: option.boolean(false),
  now: option.clock(() => performance.now(), "performance.now"),
};

/**
 * A store of answers for one process: development, tests, and servers that accept that a restart forgets. Synchronous. Throws a
 * TypeError on a bad option, and with NODE_ENV=production unless `allowInProduction` is true.
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

/** The store that {@link memoryAnswerStore} makes. */
export class MemoryAnswerStore implements AnswerStore {
  readonly engine = "memory";
  readonly retentionMs: number;
  readonly #max: number;
  readonly #now: () => number;
  /** In the order of their ends: each is put last when it is kept. */
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
    // Its giver may use the bytes again.
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
