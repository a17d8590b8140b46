import {
  assertFunction,
  assertKnownOptions,
  booleanOption,
  integerOption,
  refuseInProduction,
} from "@countersign/guard";
import { LRUCache } from "lru-cache";
import {
  leaseExpired,
  type IdempotencyClaim,
  type IdempotencyClaimResult,
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
  const { now = () => performance.now() } = options;
  assertFunction(factory, "now", now);
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

interface LiveEntry {
  state: "run" | "held";
  token: string;
  fence: number;
  fingerprint: string;
  expiresAtMs: number;
  reason: string;
}

interface DoneEntry {
  readonly token: string;
  readonly fence: number;
  readonly fingerprint: string;
}

/** The store that {@link memoryIdempotencyStore} makes: every answer is there at once. */
export class MemoryIdempotencyStore implements IdempotencyStore {
  readonly retentionMs: number;
  readonly #max: number;
  readonly #now: () => number;
  /** Runs and held keys: never evicted. */
  readonly #live = new Map<string, LiveEntry>();
  /** Bounded by `max`, which #makeRoom never lets it reach: lru-cache only keeps the time. */
  readonly #done: LRUCache<string, DoneEntry>;
  #fence = 0;
  #purgedAtMs = -Infinity;
  #closed = false;

  constructor({ max, retentionMs, now }: { max: number; retentionMs: number; now: () => number }) {
    this.retentionMs = retentionMs;
    this.#max = max;
    this.#now = now;
    // lru-cache takes a start of 0 for "no time to live", and without a resolution of 0 it would cache the time in a timer.
    const perf = { now: () => now() + 1 };
    this.#done = new LRUCache({ max, ttl: retentionMs, ttlResolution: 0, noDeleteOnStaleGet: true, perf });
  }

  claim(key: string, { token, fingerprint, leaseMs, recovery }: IdempotencyClaim): IdempotencyClaimResult {
    const done = this.#doneEntry(key);
    if (done !== undefined) return { status: "done", fingerprint: done.fingerprint };
    const entry = this.#live.get(key);
    const expiresAtMs = this.#now() + leaseMs;
    if (entry === undefined) {
      this.#done.delete(key);
      this.#makeRoom();
      const fence = this.#nextFence();
      this.#live.set(key, { state: "run", token, fence, fingerprint, expiresAtMs, reason: "" });
      return { status: "acquired", fence };
    }
    if (entry.state === "run" && entry.token === token) {
      entry.expiresAtMs = expiresAtMs;
      return { status: "acquired", fence: entry.fence };
    }
    if (entry.state === "run") {
      const remainingMs = entry.expiresAtMs - this.#now();
      if (remainingMs > 0) return { status: "in-flight", fingerprint: entry.fingerprint, remainingMs };
      if (recovery === "rerun") {
        const fence = this.#nextFence();
        Object.assign(entry, { token, fence, fingerprint, expiresAtMs });
        return { status: "acquired", fence };
      }
      entry.state = "held";
      entry.reason = leaseExpired;
    }
    return { status: "held", fingerprint: entry.fingerprint, reason: entry.reason };
  }

  read(key: string): IdempotencyRecord | undefined {
    const done = this.#doneEntry(key);
    if (done !== undefined) return { state: "done", ...done };
    const entry = this.#live.get(key);
    if (entry === undefined) return undefined;
    const { state, token, fence, fingerprint, expiresAtMs, reason } = entry;
    return state === "run"
      ? { state, token, fence, fingerprint, remainingMs: expiresAtMs - this.#now() }
      : { state, token, fence, fingerprint, reason };
  }

  heartbeat(key: string, token: string, leaseMs: number): IdempotencyOwnership {
    const run = this.#run(key, token);
    if (run === undefined) return "lost";
    run.expiresAtMs = this.#now() + leaseMs;
    return "ok";
  }

  complete(key: string, token: string): IdempotencyOwnership {
    if (this.#doneEntry(key)?.token === token) return "ok";
    const entry = this.#live.get(key);
    if (entry?.token !== token) return "lost";
    this.#finish(key, entry);
    return "ok";
  }

  release(key: string, token: string): IdempotencyOwnership {
    if (this.#run(key, token) === undefined) return "lost";
    this.#live.delete(key);
    return "ok";
  }

  hold(key: string, token: string, reason: string): IdempotencyOwnership {
    const run = this.#run(key, token);
    if (run === undefined) return "lost";
    run.state = "held";
    run.reason = reason;
    return "ok";
  }

  resolve(key: string, outcome: "done" | "released"): "ok" | "not-held" {
    this.#assertOpen();
    const entry = this.#live.get(key);
    if (entry === undefined || (entry.state === "run" && entry.expiresAtMs > this.#now())) return "not-held";
    if (outcome === "done") this.#finish(key, entry);
    else this.#live.delete(key);
    return "ok";
  }

  prune(): number {
    this.#assertOpen();
    const before = this.#done.size;
    this.#done.purgeStale();
    return before - this.#done.size;
  }

  close(): void {
    this.#closed = true;
    this.#live.clear();
    this.#done.clear();
  }

  #assertOpen(): void {
    if (this.#closed) throw new Error("the memory idempotency store has been closed");
  }

  #doneEntry(key: string): DoneEntry | undefined {
    this.#assertOpen();
    return this.#done.get(key);
  }

  #run(key: string, token: string): LiveEntry | undefined {
    this.#assertOpen();
    const entry = this.#live.get(key);
    return entry?.state === "run" && entry.token === token ? entry : undefined;
  }

  #finish(key: string, { token, fence, fingerprint }: LiveEntry): void {
    this.#live.delete(key);
    this.#done.set(key, { token, fence, fingerprint });
  }

  // One counter for all keys: a fence stays higher than each earlier one of its key, also after a release.
  #nextFence(): number {
    this.#fence += 1;
    return this.#fence;
  }

  #makeRoom(): void {
    if (this.#live.size + this.#done.size < this.#max) return;
    const nowMs = this.#now();
    if (nowMs - this.#purgedAtMs >= purgePauseMs) {
      this.#purgedAtMs = nowMs;
      this.#done.purgeStale();
      if (this.#live.size + this.#done.size < this.#max) return;
    }
    throw new Error(`the memory idempotency store is full (${this.#max} keys)`);
  }
}
