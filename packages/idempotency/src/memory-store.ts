import { randomUUID } from "node:crypto";
import { option, publishBuilt, readOptions, refuseInProduction, type OptionTable } from "@countersign/core";
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
import { decideClaim, recordOf, type StoredRecord } from "./stored-record.ts";

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
const fenceRule = option.integer({ min: 0, max: Number.MAX_SAFE_INTEGER });
const pageRule = option.integer({ min: 1, max: 1_000 });

// A full store is searched for ended records at most this often, so that a flood of claims costs no walk each.
const purgePauseMs = 1_000;

export const table: OptionTable<MemoryIdempotencyStoreOptions> = {
  max: option.integer({ min: 1, max: 10_000_000, fallback: 100_000 }),
  retentionMs: option.integer({ min: 1, max: 31_536_000_000, fallback: 86_400_000 }),
  allowInProduction: option.boolean(false),
  now: option.clock(() => performance.now(), "performance.now"),
};

/**
 * A store for one process: development, tests, and servers that accept that a restart forgets. Synchronous. Throws a
 * TypeError on a bad option, and with NODE_ENV=production unless `allowInProduction` is true.
 */
export function memoryIdempotencyStore(options: MemoryIdempotencyStoreOptions = {}): MemoryIdempotencyStore {
  const read = readOptions(factory, table, options);
  refuseInProduction(factory, read.allowInProduction);
  publishBuilt(factory, factory, () => ({ allowInProduction: read.allowInProduction }));
  return new MemoryIdempotencyStore(read);
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
  readonly engine = "memory";
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

  claim(key: string, claim: IdempotencyClaim): IdempotencyClaimResult {
    const entry = this.#entry(key);
    const nowMs = this.#now();
    const untilMs = nowMs + claim.leaseMs;
    const decision = decideClaim(entry === undefined ? undefined : storedAt(entry, nowMs), claim);
    if (entry === undefined || decision.action === "take") {
      if (entry === undefined) this.#makeRoom(key);
      const { token, fingerprint } = claim;
      const fence = this.#nextFence();
      this.#entries.set(key, { state: "run", token, fence, fingerprint, untilMs, reason: "" });
      return { status: "acquired", fence };
    }
    if (decision.action === "lease") entry.untilMs = untilMs;
    if (decision.action === "hold") Object.assign(entry, { state: "held", reason: leaseExpired });
    return decision.result;
  }

  read(key: string): IdempotencyRecord | undefined {
    const entry = this.#entry(key);
    return entry === undefined ? undefined : recordOf(storedAt(entry, this.#now()));
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
    const fence = fenceRule.read(decision?.fence, `${factory}: resolve`, "fence");
    const entry = this.#entry(key);
    if (entry === undefined || entry.state === "done" || entry.fence !== fence) return "not-held";
    if (entry.state === "run" && entry.untilMs > this.#now()) return "not-held";
    if (outcome === "done") this.#finish(Object.assign(entry, { token: randomUUID(), reason: "" }));
    else this.#entries.delete(key);
    return "ok";
  }

  list({ state, cursor = "", limit }: IdempotencyListQuery): IdempotencyListing {
    this.#assertOpen();
    pageRule.read(limit, `${factory}: list`, "limit");
    const nowMs = this.#now();
    const matching: { key: string; record: IdempotencyRecord }[] = [];
    for (const [key, entry] of this.#entries) {
      const record = entry.state === state && key > cursor ? recordOf(storedAt(entry, nowMs)) : undefined;
      if (record !== undefined) matching.push({ key, record });
    }
    matching.sort((a, b) => (a.key < b.key ? -1 : 1));
    const entries = matching.slice(0, limit);
    return { entries, cursor: entries.length < matching.length ? entries.at(-1)?.key : undefined };
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

function storedAt({ untilMs, ...kept }: Entry, nowMs: number): StoredRecord {
  return { ...kept, remainingMs: untilMs - nowMs };
}
