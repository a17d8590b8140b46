/** What the stores bind to a statement, by position. */
export type SqliteValue = string | number | null;

/** A prepared statement, as far as the stores use it. `Value` is what can be bound by position. */
export interface SqliteStatement<Value = SqliteValue> {
  run(...parameters: Value[]): { readonly changes: number | bigint };
  get(...parameters: Value[]): unknown;
  all(...parameters: Value[]): unknown[];
}

/**
 * An open connection: the surface that `libsql`, `better-sqlite3` and the DatabaseSync of `node:sqlite` share. Drivers tell
 * whether a transaction is open by `inTransaction` or `isTransaction`; where both are missing, the stores find out with a BEGIN.
 * Values are `unknown`, as in the types of libsql and better-sqlite3: before TypeScript 6 no type with `null` in it fits these.
 */
export interface SqliteDatabase {
  exec(sql: string): unknown;
  prepare(sql: string): SqliteStatement<unknown>;
  readonly inTransaction?: boolean | undefined;
  readonly isTransaction?: boolean | undefined;
}

/** A connection on which the caller has begun a transaction. */
export type SqliteTransaction = SqliteDatabase;

/** A row as the drivers return it. libsql adds a member of its own to it, so rows are never compared or spread. */
export type SqliteRow = Readonly<Record<string, unknown>>;

/** The row of a query that always has one. */
export function singleRow(row: unknown): SqliteRow {
  if (!isRow(row)) throw new Error("the SQLite driver returned no row where there is always one");
  return row;
}

/** Connections that were told to return every integer as a bigint are fine: nothing here reaches 2^53. */
export function integerOf(value: unknown): number {
  if (typeof value === "number" || typeof value === "bigint") return Number(value);
  throw new Error("the SQLite driver returned no number where there is always one");
}

function isRow(row: unknown): row is SqliteRow {
  return typeof row === "object" && row !== null;
}
