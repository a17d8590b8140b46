import type { FirstChange, KeyChange, KeyState, SeenRow } from "./life.ts";
import type { Awaitable, IdempotencyListQuery } from "./store.ts";

/** The row that a write may change: as it was read, or an owner's in one of these states. */
export type Seen =
  | Pick<SeenRow, "token" | "version" | "fence" | "nowMs">
  | { readonly token: string; readonly states: readonly KeyState[] };

export interface ListedRows {
  readonly rows: readonly { readonly key: string; readonly row: SeenRow }[];
  /** For the next page; undefined after the last. */
  readonly cursor: string | undefined;
}

/**
 * Where an engine keeps the rows of keys. A table stores rows, and decides nothing: which change follows which row is in life.ts. Each
 * method is one atomic step; it throws when it cannot reach the engine, and never guesses. Durations go in, and the engine's own clock
 * makes times of them.
 */
export interface KeyTable {
  /** Of the engine, such as `postgres`, for traces and metrics. */
  readonly engine: string;
  /**
   * Adds the first row of a key; its version is 1. Returns the row's fence: the engine's time in microseconds since 1970, above every
   * fence that the key had before. Where the key has a row, also one that is over, returns that row if the step has read it, else undefined.
   */
  add(key: string, row: FirstChange): Awaitable<number | SeenRow | undefined>;
  /** Reads the committed row of a key, also one that is over. */
  look(key: string): Awaitable<SeenRow | undefined>;
  /**
   * Writes `change` and raises the version, if the row is still as `seen`: its token and version, or its token and one of the states.
   * Returns the row's fence, or any number where `seen` names states: an owner knows its fence. Undefined where the row is another one, and
   * nothing was written.
   */
  write(key: string, change: KeyChange, seen: Seen): Awaitable<number | undefined>;
  /** Lists rows in a state by page. A row that stays in the state is listed at least once. */
  list(query: IdempotencyListQuery): Awaitable<ListedRows>;
  /** Removes rows that are over (`done` and `free`, 0 ms remaining), never others. Returns how many of them were `done`. */
  prune(): Awaitable<number>;
  /** Frees the table's own timers and connections. Later calls throw. */
  close(): Awaitable<void>;
}

/** For a table that reads and writes in one step: true if the row may be written. */
export function isAsSeen(row: Pick<SeenRow, "state" | "token" | "version">, seen: Seen): boolean {
  if (row.token !== seen.token) return false;
  return "version" in seen ? row.version === seen.version : seen.states.includes(row.state);
}
