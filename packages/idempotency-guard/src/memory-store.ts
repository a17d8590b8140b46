import { randomUUID } from "node:crypto";
import {
  assertKnownOptions,
  booleanOption,
  clockOption,
  integerOption,
  refuseInProduction,
} from "@countersign/guard";
import {
  leaseExpired,
  type IdempotencyClaim,
  type IdempotencyClaimResult,
  type IdempotencyDecision,
  type IdempotencyListing,
  type IdempotencyListQuery,
  type IdempotencyOwnership,
  type IdempotencyRecord,
  type IdempotencyStore,
} from "./store.ts";

/** Options of {@link memoryIdempotencyStore}. */
export interface MemoryIdempotencyStoreOptions {
  /** How many keys are kept at most; a further one is refused (503). Default 100,000. */
  readonly max?: number | undefined;
  /** For how long a processed key is remembered, in milliseconds. Default 86,400,000 (24 hours). */
  readonly retentionMs?: number | undefined;
  /** Default false: what the store knows is gone with the process, and a retry after that pays again. */
  readonly allowInProduction?: boolean | undefined;
  /** A monotonic clock in milliseconds. Default `performance.now`. */
  readonly now?: (() => number) | undefined;
}

const factory = "memoryIdempotencyStore";
// A full store is searched for ended records at most this often, so that a flood of claims costs no walk each.
const purgePauseMs = 1_000;

/**
 * A store for one process: development, tests, and servers that accept that a restart forgets. Synchronous. Throws a
 * TypeError on a bad option, and with NODE_ENV=production unless `allowInProduction` is true.
 */
export function memoryIdempotencyStore(options: MemoryIdempotencyStoreOptions = {}): MemoryIdempotencyStore {
  assertKnownOptions(factory, options, ["max", "retentionMs", "allowInProduction", "now"]);
  const now = clockOption(factory, options.now);
  refuseInProduction(factory, booleanOption(factory, "allowInProduction", options.allowInProduction, false));
  return new MemoryIdempotencyStore({
    max: integerOption(factory, "max", options.max, { min: 1, max: 10_000_000, fallback: 100_000 }),
    retentionMs: integerOption(factory, "retentionMs", options.retentionMs, {
      min: 1,
      max: 31_536_000_000,
      fallback: 86_400_000,
    }),
    now,
  });
}

interface Entry {
  state: "run" | "held" | "done";
  token: string;
  fence: number;
  fingerprint: string;
  /** End of the lease of a run, or of the retention of a done key. */
  untilMs: number;
  reason: string;
}

/** The store that {@link memoryIdempotencyStore} makes: every answer is there at once, each step costs the same at any `max`. */
export class MemoryIdempotencyStore implements IdempotencyStore {
  readonly retentionMs: number;
  readonly #max: number;
  readonly #now: () => number;
  readonly #entries = new Map<string, Entry>();
  #fence = 0;
  #purgedAtMs = -Infinity;
  #closed = false;

  constructor({ max, retentionMs, now }: { max: number; retentionMs: number; now: () => number }) {
    this.retentionMs = retentionMs;
    this.#max = max;
    this.#now = now;
  }

  claim(key: string, { token, fingerprint, leaseMs, recovery }: IdempotencyClaim): IdempotencyClaimResult {
    const entry = this.#entry(key);
    const untilMs = this.#now() + leaseMs;
    if (entry === undefined) {
      this.#makeRoom(key);
      const fence = this.#nextFence();
      this.#entries.set(key, { state: "run", token, fence, fingerprint, untilMs, reason: "" });
      return { status: "acquired", fence };
    }
    if (entry.state === "done") return { status: "done", fingerprint: entry.fingerprint };
    if (entry.state === "run") {
      if (entry.token === token) {
        entry.untilMs = untilMs;
        return { status: "acquired", fence: entry.fence };
      }
      entry.untilMs = Math.min(entry.untilMs, untilMs);
      const remainingMs = entry.untilMs - this.#now();
      if (remainingMs > 0) return { status: "in-flight", fingerprint: entry.fingerprint, remainingMs };
      if (recovery === "rerun") {
        const fence = this.#nextFence();
        Object.assign(entry, { token, fence, fingerprint, untilMs });
        return { status: "acquired", fence };
      }
      entry.state = "held";
      entry.reason = leaseExpired;
    }
    return { status: "held", fingerprint: entry.fingerprint, reason: entry.reason };
  }

  read(key: string): IdempotencyRecord | undefined {
    const entry = this.#entry(key);
    return entry === undefined ? undefined : this.#record(entry);
  }

  heartbeat(key: string, token: string, leaseMs: number): IdempotencyOwnership {
    const run = this.#run(key, token);
    if (run === undefined) return "lost";
    run.untilMs = this.#now() + leaseMs;
    return "ok";
  }

  complete(key: string, token: string): IdempotencyOwnership {
    const entry = this.#entry(key);
    if (entry?.token !== token) return "lost";
    if (entry.state !== "done") this.#finish(entry);
    return "ok";
  }

  release(key: string, token: string): IdempotencyOwnership {
    if (this.#run(key, token) === undefined) return "lost";
    this.#entries.delete(key);
    return "ok";
  }

  hold(key: string, token: string, reason: string): IdempotencyOwnership {
    const run = this.#run(key, token);
    if (run === undefined) return "lost";
    run.state = "held";
    run.reason = reason;
    return "ok";
  }

  resolve(key: string, outcome: "done" | "released", decision: IdempotencyDecision): "ok" | "not-held" {
    const range = { min: 0, max: Number.MAX_SAFE_INTEGER };
    const fence = integerOption(`${factory}: resolve`, "fence", decision?.fence, range);
    const entry = this.#entry(key);
    if (entry === undefined || entry.state === "done" || entry.fence !== fence) return "not-held";
    if (entry.state === "run" && entry.untilMs > this.#now()) return "not-held";
    if (outcome === "done") this.#finish(Object.assign(entry, { token: randomUUID(), reason: "" }));
    else this.#entries.delete(key);
    return "ok";
  }

  list({ state, cursor = "", limit }: IdempotencyListQuery): IdempotencyListing {
    this.#assertOpen();
    integerOption(`${factory}: list`, "limit", limit, { min: 1, max: 1_000 });
    const matching: [string, Entry][] = [];
    for (const [key, entry] of this.#entries) {
      if (entry.state === state && key > cursor && !this.#isForgotten(entry)) matching.push([key, entry]);
    }
    matching.sort(([a], [b]) => (a < b ? -1 : 1));
    const page = matching.slice(0, limit);
    return {
      entries: page.map(([key, entry]) => ({ key, record: this.#record(entry) })),
      cursor: page.length < matching.length ? page.at(-1)?.[0] : undefined,
    };
  }

  prune(): number {
    this.#assertOpen();
    let pruned = 0;
    for (const [key, entry] of this.#entries) {
      if (this.#isForgotten(entry) && this.#entries.delete(key)) pruned += 1;
    }
    return pruned;
  }

  close(): void {
    this.#closed = true;
    this.#entries.clear();
  }

  #assertOpen(): void {
    if (this.#closed) throw new Error("the memory idempotency store has been closed");
  }

  #entry(key: string): Entry | undefined {
    this.#assertOpen();
    const entry = this.#entries.get(key);
    return entry === undefined || this.#isForgotten(entry) ? undefined : entry;
  }

  // Runs and held keys never go by themselves.
  #isForgotten({ state, untilMs }: Entry): boolean {
    return state === "done" && untilMs <= this.#now();
  }

  #run(key: string, token: string): Entry | undefined {
    const entry = this.#entry(key);
    return entry?.state === "run" && entry.token === token ? entry : undefined;
  }

  #record({ state, token, fence, fingerprint, untilMs, reason }: Entry): IdempotencyRecord {
    if (state === "done") return { state, token, fence, fingerprint };
    if (state === "held") return { state, token, fence, fingerprint, reason };
    return { state, token, fence, fingerprint, remainingMs: untilMs - this.#now() };
  }

  #finish(entry: Entry): void {
    entry.state = "done";
    entry.untilMs = this.#now() + this.retentionMs;
  }

  // One counter for all keys: a fence stays higher than each earlier one of its key, also after a release. It begins at the time of
  // day, in microseconds, so that it is also above those of a process that was here before.
  #nextFence(): number {
    this.#fence = this.#fence === 0 ? Date.now() * 1_000 : this.#fence + 1;
    return this.#fence;
  }

  #makeRoom(key: string): void {
    if (this.#entries.size < this.#max) return;
    // What is left of the key itself has ended.
    if (this.#entries.delete(key)) return;
    const nowMs = this.#now();
    if (nowMs - this.#purgedAtMs >= purgePauseMs) {
      this.#purgedAtMs = nowMs;
      if (this.prune() > 0) return;
    }
    throw new Error(`the memory idempotency store is full (${this.#max} keys)`);
  }
}
