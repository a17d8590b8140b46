import type { NonceClaim } from "@countersign/core";
import type { Sql } from "./sql.ts";
import type { ColumnType } from "./tables.ts";

/** Columns with what is written into them. */
export type Columns = Readonly<Record<string, Sql>>;

/** What an INSERT does with a row that is there. */
interface Conflict {
  /** The columns of the primary key. */
  readonly key: readonly string[];
  readonly set: Columns;
  /** The condition by which the row changes. It counts as changed only then, unless there is a `touched` column. */
  readonly where?: Sql;
  /** A column that only grows, by which an engine without such a condition changes the row all the same. */
  readonly touched?: string;
}

/** A change of rows that their keys find. */
interface Update {
  readonly of: string;
  readonly set: Columns;
  readonly where: Sql;
  /** See {@link SqlDialect.insert}. */
  readonly guard: Sql | undefined;
}

/** How an engine writes statements: what every table needs. */
export interface SqlDialect {
  /**
   * Whether a statement that writes can give something of its rows. Elsewhere an INSERT counts a new row once and one that was there twice, and rows of tasks
   * have a column `mark`, of the call that has added them.
   */
  readonly hasReturning: boolean;
  /** Whether an index can be of some rows alone. */
  readonly hasPartialIndexes: boolean;
  /** Of a column. */
  readonly types: Readonly<Record<ColumnType, string>>;
  /** A value: from hexadecimal. */
  digest(hex: string): Sql;
  integer(value: number): Sql;
  text(text: string): Sql;
  bytes(value: Uint8Array): Sql;
  /** What {@link SqlDialect.text} has written. */
  readText(value: unknown): string;
  /** The function that gives the greatest of some values. */
  readonly greatest: string;
  /** The column with the instant at which a row is over, of every table but those of tasks. */
  readonly until: string;
  /** "Now", read once for all rows. */
  once(now: Sql): Sql;
  /** One of the words of a column such as `state`: as partial indexes need it. */
  state(state: string): Sql;
  /** The instant so many milliseconds after another. */
  after(instant: Sql, durationMs: number): Sql;
  /** An instant in microseconds since 1970. */
  microseconds(instant: Sql): Sql;
  /** The milliseconds from "now" to an instant. */
  milliseconds(instant: Sql, now: Sql): Sql;
  /** The columns by which a row is found, with their values. */
  readonly ids: {
    nonce(claim: Pick<NonceClaim, "scope" | "nonce">): Columns;
    key(key: string): Columns;
    response(token: string): Columns;
  };
  /** Columns that a key's row has besides, where it is found by a digest. */
  named(key: string): Columns;
  /** Begins an INSERT of rows with the same columns. Each is written only by the guard, which may fail instead of being false. */
  insert(into: string, rows: readonly Columns[], guard: Sql): Sql;
  /** Ends it. */
  onConflict(conflict: Conflict): Sql;
  /** Ends it: leaves a row of this key as it is, or fails with the engine's error of a duplicate. */
  unlessThere(key: readonly string[]): Sql;
  /** Ends it, in a transaction: waits for others that have added a row of this key. Gives each `added` key, or locks and counts those that were there. */
  orLock(key: readonly string[]): Sql;
  update(update: Update): Sql;
  /** In {@link SqlDialect.onConflict}: a column of the row that is there. */
  stored(column: string): Sql;
  /** In {@link SqlDialect.onConflict}: what a column of the new row would be, which is `value`. */
  proposed(column: string, value: Sql): Sql;
}
