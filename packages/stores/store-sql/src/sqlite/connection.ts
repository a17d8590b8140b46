import { isPromiseLike } from "@countersign/core/internal";
import { connectionOf } from "./gated-database.ts";
import { StoreGate } from "@countersign/idempotency/store";

type SqliteValue = string | number | null;

/** A prepared statement, as far as the stores use it. `Value` is what can be bound by position. */
export interface SqliteStatement<Value = SqliteValue> {
  run(...parameters: Value[]): { readonly changes: number | bigint };
  get(...parameters: Value[]): unknown;
  all(...parameters: Value[]): unknown[];
}

/**
 * An open connection of `libsql`, `better-sqlite3` or `node:sqlite`. `inTransaction` or `isTransaction` says whether a transaction is open;
 * without both the stores find out by a BEGIN. Values are `unknown`: before TypeScript 6 no type with `null` fits both drivers' types.
 */
export interface SqliteDatabase {
  exec(sql: string): unknown;
  prepare(sql: string): SqliteStatement<unknown>;
  readonly inTransaction?: boolean | undefined;
  /** False when it is closed, of libsql and better-sqlite3; a method of node:sqlite. */
  readonly open?: unknown;
  readonly isTransaction?: boolean | undefined;
}

/** A row of a driver. libsql adds a member of its own, so rows must not be compared or spread. */
export type SqliteRow = Readonly<Record<string, unknown>>;

export function singleRow(row: unknown): SqliteRow {
  if (!isRow(row)) throw new Error("the SQLite driver returned no row where there is always one");
  return row;
}

/** Takes a bigint too, which some connections return for every integer: nothing here reaches 2^53. */
export function integerOf(value: unknown): number {
  if (typeof value === "number" || typeof value === "bigint") return Number(value);
  throw new Error("the SQLite driver returned no number where there is always one");
}

function isRow(row: unknown): row is SqliteRow {
  return typeof row === "object" && row !== null;
}

/** Stands for SQLite's own clock. */
export function engineTime(): null {
  return null;
}

/**
 * Runs `work` between BEGIN IMMEDIATE and COMMIT; rolls back when it throws. `work` must be synchronous: across an await, other requests
 * would run inside the transaction. Throws inside another transaction, and the driver's error when the busy timeout has passed.
 */
export function withImmediateTransaction<Db extends SqliteDatabase, T>(
  database: Db,
  work: (tx: Db) => T,
): Exclude<T, PromiseLike<unknown>> {
  if (isInTransaction(database)) {
    throw new Error("withImmediateTransaction: a transaction is already open on this connection");
  }
  beginImmediate(database);
  return endTransaction("withImmediateTransaction", database, work);
}

/** Takes the write lock. Throws the driver's error when another connection has it for as long as the busy timeout. */
export function beginImmediate(database: SqliteDatabase): void {
  // By exec(), before any prepared statement writes: one that meets SQLITE_BUSY in libsql is not reset, and every later COMMIT on the
  // connection fails until it runs again. With the write lock no statement meets it.
  database.exec("BEGIN IMMEDIATE");
}

/** Runs `work` in the open transaction, then COMMIT; rolls back when either throws. `caller` begins the message about a promise. */
export function endTransaction<Db extends SqliteDatabase, T>(
  caller: string,
  database: Db,
  work: (tx: Db) => T,
): Exclude<T, PromiseLike<unknown>> {
  try {
    const result = work(database);
    if (!isSettled(result)) throw promised(caller, result);
    database.exec("COMMIT");
    return result;
  } catch (error) {
    rollBack(database);
    throw error;
  }
}

function promised(caller: string, answer: unknown): TypeError {
  // Its rejection is nobody's any more, and would end the process.
  if (isPromiseLike(answer)) answer.then(undefined, () => {});
  return new TypeError(`${caller}: the function must be synchronous, it returned a promise`);
}

export function isInTransaction(database: SqliteDatabase): boolean {
  // Asked for the transaction of a closed connection, libsql ends the process.
  if (database.open === false) throw new Error("the connection to the SQLite database is closed");
  const isOpen = database.inTransaction ?? database.isTransaction;
  if (isOpen !== undefined) return isOpen;
  try {
    // Takes no lock. SQLite refuses it exactly when a transaction is open; node:sqlite before 22.16 has no other sign.
    database.exec("BEGIN DEFERRED");
  } catch (error) {
    if (String(error).includes("within a transaction")) return true;
    throw error;
  }
  database.exec("COMMIT");
  return false;
}

// After some errors (disk full, I/O) SQLite has rolled back by itself, and ROLLBACK would hide the error that says so.
export function rollBack(database: SqliteDatabase): void {
  if (isInTransaction(database)) database.exec("ROLLBACK");
}

function isSettled<T>(value: T): value is Exclude<T, PromiseLike<unknown>> {
  return !isPromiseLike(value);
}

/** Keeps the steps of a store out of the caller's transactions. */
export function createGate(store: string, database: SqliteDatabase): StoreGate {
  return new StoreGate(store, () => assertNoTransaction(store, database));
}

function assertNoTransaction(store: string, database: SqliteDatabase): void {
  // A claim could be rolled back after it was answered, and a read could report a payment that never commits.
  if (isInTransaction(database)) {
    throw new Error(
      `${store}: a transaction is open on the store's connection; keep transactions synchronous, ` +
        "or give the store a connection of its own",
    );
  }
}

export function assertInTransaction(store: string, database: SqliteDatabase): void {
  if (!isInTransaction(database)) throw new Error(`${store}: no transaction is open; run() opens one`);
}

export function assertConnection(store: string, database: SqliteDatabase, tx: unknown): void {
  if (connectionOf(tx) === database) return;
  throw new TypeError(`${store}: tx must be the connection that run() gave to its function`);
}
