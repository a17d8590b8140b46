import { isAsSeen, type KeyTable, type ListedRows, type Seen } from "./key-table.ts";
import { isOver, type FirstChange, type KeyChange, type KeyRow, type SeenRow } from "./life.ts";
import type { IdempotencyListQuery } from "./store.ts";

// A full table is searched for rows that are over at most this often: a flood of claims must not cost a walk each.
const purgePauseMs = 1_000;

/** Changed in place: nobody else has it. */
interface MemoryRow {
  state: KeyRow["state"];
  token: string;
  fence: number;
  fingerprint: string;
  reason: string;
  recovery: KeyRow["recovery"];
  decision: KeyRow["decision"];
  version: number;
  /** End of the lease or the retention, on the table's clock. */
  untilMs: number;
}

export interface MemoryTableOptions {
  /** The most rows; further ones are refused. */
  readonly max: number;
  /** A monotonic clock in milliseconds. */
  readonly now: () => number;
  /** The clock's origin, in milliseconds since 1970. */
  readonly originMs: number;
}

/** Keeps the rows of keys in a Map. Returns at once; each step costs the same at any `max`. */
export class MemoryTable implements KeyTable {
  readonly engine = "memory";
  readonly #options: MemoryTableOptions;
  readonly #rows = new Map<string, MemoryRow>();
  #fence = 0;
  #purgedAtMs = -Infinity;

  constructor(options: MemoryTableOptions) {
    this.#options = options;
  }

  add(key: string, row: FirstChange): number | SeenRow | undefined {
    const found = this.#rows.get(key);
    if (found !== undefined) return this.#seen(found);
    this.#makeRoom();
    const { state, token, fingerprint, reason, recovery, durationMs } = row;
    const fence = this.#nextFence();
    const untilMs = this.#options.now() + durationMs;
    this.#rows.set(key, {
      state,
      token,
      fence,
      fingerprint,
      reason,
      recovery,
      decision: undefined,
      version: 1,
      untilMs,
    });
    return fence;
  }

  look(key: string): SeenRow | undefined {
    const row = this.#rows.get(key);
    return row === undefined ? undefined : this.#seen(row);
  }

  write(key: string, change: KeyChange, seen: Seen): number | undefined {
    const row = this.#rows.get(key);
    if (row === undefined || !isAsSeen(row, seen)) return undefined;
    const { state, reason, durationMs, token, fingerprint, recovery, decision } = change;
    if (change.raisesFence === true) row.fence = this.#nextFence();
    if (decision !== undefined) row.decision = decision ?? undefined;
    if (state === "free" && row.decision === undefined) {
      // All fences come from one counter: that of this key need not be remembered.
      this.#rows.delete(key);
      return row.fence;
    }
    row.state = state;
    row.reason = reason;
    if (token !== undefined) row.token = token;
    if (fingerprint !== undefined) row.fingerprint = fingerprint;
    if (recovery !== undefined) row.recovery = recovery;
    row.untilMs = this.#options.now() + durationMs;
    row.version += 1;
    return row.fence;
  }

  list({ state, cursor = "", limit }: IdempotencyListQuery): ListedRows {
    const matching: { key: string; row: SeenRow }[] = [];
    for (const [key, row] of this.#rows) {
      if (row.state !== state || key <= cursor) continue;
      const seen = this.#seen(row);
      if (!isOver(seen)) matching.push({ key, row: seen });
    }
    matching.sort((a, b) => (a.key < b.key ? -1 : 1));
    const rows = matching.slice(0, limit);
    return { rows, cursor: rows.length < matching.length ? rows.at(-1)?.key : undefined };
  }

  prune(): number {
    let pruned = 0;
    for (const [key, row] of this.#rows) {
      if (isOver(this.#seen(row)) && this.#rows.delete(key) && row.state === "done") pruned += 1;
    }
    return pruned;
  }

  close(): void {
    this.#rows.clear();
  }

  #seen(row: MemoryRow): SeenRow {
    const { state, token, fence, fingerprint, reason, recovery, decision, version, untilMs } = row;
    const { now, originMs } = this.#options;
    const clockMs = now();
    const remainingMs = untilMs - clockMs;
    const nowMs = Math.round(originMs + clockMs);
    return { state, token, fence, fingerprint, reason, recovery, decision, version, remainingMs, nowMs };
  }

  // Begins at the time of day in microseconds, above the fences of an earlier process.
  #nextFence(): number {
    this.#fence = this.#fence === 0 ? Date.now() * 1_000 : this.#fence + 1;
    return this.#fence;
  }

  #makeRoom(): void {
    const { max, now } = this.#options;
    if (this.#rows.size < max) return;
    const nowMs = now();
    if (nowMs - this.#purgedAtMs >= purgePauseMs) {
      this.#purgedAtMs = nowMs;
      this.prune();
      if (this.#rows.size < max) return;
    }
    throw new Error(`the memory idempotency store is full (${max} keys)`);
  }
}
