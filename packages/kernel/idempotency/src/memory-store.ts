import { randomUUID } from "node:crypto";
import {
  option,
  readOptions,
  refuseInProduction,
  type Given,
  type OptionTable,
} from "@countersign/core/door";
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
  type KeptDecision,
  type ReleasedKey,
} from "./store.ts";
import {
  assertDecision,
  decideClaim,
  operatorEntry,
  recordOf,
  releasedOf,
  type StoredRecord,
} from "./store-rules.ts";

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
const pageRule = option.integer({ min: 1, max: 1_000 });

// A full store is searched for ended records at most this often: a flood of claims must not cost a walk each.
const purgePauseMs = 1_000;

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

interface Entry {
  /** `free`: absent to every reader, kept for an operator's decision. */
  state: "running" | "held" | "done" | "free";
  token: string;
  fence: number;
  fingerprint: string;
  /** End of a run's lease, or of a done or free key's retention. */
  untilMs: number;
  reason: string;
  decision: KeptDecision | undefined;
}

interface MemoryParts extends Omit<Given<MemoryIdempotencyStoreOptions>, "allowInProduction"> {
  /** The clock's origin, in milliseconds since 1970. */
  readonly originMs: number;
  readonly warnInProduction: () => void;
}

/** Answers at once; each step costs the same at any `max`. */
export class MemoryIdempotencyStore implements IdempotencyStore {
  readonly engine = "memory";
  readonly isPrivate = true;
  readonly retentionMs: number;
  readonly #max: number;
  readonly #now: () => number;
  readonly #originMs: number;
  readonly #warnInProduction: () => void;
  readonly #entries = new Map<string, Entry>();
  #fence = 0;
  #purgedAtMs = -Infinity;
  #closed = false;

  constructor({ max, retentionMs, now, originMs, warnInProduction }: MemoryParts) {
    this.retentionMs = retentionMs;
    this.#max = max;
    this.#now = now;
    this.#originMs = originMs;
    this.#warnInProduction = warnInProduction;
  }

  claim(key: string, claim: IdempotencyClaim): IdempotencyClaimResult {
    this.#warnInProduction();
    const entry = this.#entry(key);
    const nowMs = this.#now();
    const untilMs = nowMs + claim.leaseMs;
    const decision = decideClaim(entry === undefined ? undefined : storedAt(entry, nowMs), claim);
    if (entry === undefined || decision.action === "take") {
      if (entry === undefined) this.#makeRoom(key);
      const { token, fingerprint } = claim;
      const fence = this.#nextFence();
      const kept = entry?.decision;
      this.#entries.set(key, {
        state: "running",
        token,
        fence,
        fingerprint,
        untilMs,
        reason: "",
        decision: kept,
      });
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
    if (entry?.token !== token || entry.state === "free") return "lost";
    if (entry.state !== "done") this.#end(entry, "done");
    return "ok";
  }

  release(key: string, token: string): IdempotencyOwnership {
    const run = this.#run(key, token);
    if (run === undefined) return "lost";
    // An operator's decision is kept: no failing retry wipes it out.
    if (run.decision === undefined) this.#entries.delete(key);
    else this.#end(run, "free");
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
    assertDecision(factoryName, decision);
    const entry = this.#entry(key);
    if (entry === undefined || entry.fence !== decision.fence) return "not-held";
    const isExpired = entry.state === "running" && entry.untilMs <= this.#now();
    if (entry.state !== "held" && !isExpired) return "not-held";
    const { fence } = entry;
    const reason = isExpired ? leaseExpired : entry.reason;
    const kept = { ...operatorEntry(decision, this.#time()), outcome, fence, reason };
    this.#end(
      Object.assign(entry, { token: randomUUID(), decision: kept }),
      outcome === "done" ? outcome : "free",
    );
    return "ok";
  }

  reopen(key: string, decision: IdempotencyDecision): "ok" | "not-decided" {
    assertDecision(factoryName, decision);
    const entry = this.#entry(key);
    if (entry === undefined || entry.fence !== decision.fence) return "not-decided";
    const { state, decision: kept } = entry;
    // A later attempt has a fence of its own.
    if (kept?.fence !== entry.fence || (state !== "done" && state !== "free")) return "not-decided";
    const reopened = operatorEntry(decision, this.#time());
    Object.assign(entry, {
      state: "held",
      token: randomUUID(),
      fence: this.#nextFence(),
      reason: kept.reason,
      decision: { ...kept, reopened },
    });
    return "ok";
  }

  readReleased(key: string): ReleasedKey | undefined {
    const entry = this.#entry(key);
    return entry === undefined ? undefined : releasedOf(storedAt(entry, this.#now()));
  }

  list({ state, cursor = "", limit }: IdempotencyListQuery): IdempotencyListing {
    this.#assertOpen();
    pageRule.read(limit, `${factoryName}: list`, "limit");
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
      // A free one is not counted: no caller knows of it.
      if (this.#isForgotten(entry) && this.#entries.delete(key) && entry.state === "done") pruned += 1;
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
    return (state === "done" || state === "free") && untilMs <= this.#now();
  }

  #run(key: string, token: string): Entry | undefined {
    const entry = this.#entry(key);
    return entry?.state === "running" && entry.token === token ? entry : undefined;
  }

  #end(entry: Entry, state: "done" | "free"): void {
    entry.state = state;
    entry.reason = "";
    entry.untilMs = this.#now() + this.retentionMs;
  }

  #time(): number {
    return Math.round(this.#originMs + this.#now());
  }

  // One counter for all keys, so that a fence is above all earlier ones of its key, also after a release. It begins at the time of day in
  // microseconds, above those of an earlier process.
  #nextFence(): number {
    this.#fence = this.#fence === 0 ? Date.now() * 1_000 : this.#fence + 1;
    return this.#fence;
  }

  #makeRoom(key: string): void {
    if (this.#entries.size < this.#max) return;
    if (this.#entries.delete(key)) return;
    const nowMs = this.#now();
    if (nowMs - this.#purgedAtMs >= purgePauseMs) {
      this.#purgedAtMs = nowMs;
      this.prune();
      if (this.#entries.size < this.#max) return;
    }
    throw new Error(`the memory idempotency store is full (${this.#max} keys)`);
  }
}

function storedAt({ untilMs, ...kept }: Entry, nowMs: number): StoredRecord {
  return { ...kept, remainingMs: untilMs - nowMs };
}
