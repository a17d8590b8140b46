import type { SqliteDatabase, SqliteTransaction } from "./driver.ts";

/**
 * Runs `work` between BEGIN IMMEDIATE and COMMIT, and rolls back when it throws. `work` must be synchronous: across an await,
 * other requests would run inside the transaction. Throws when the connection is already in a transaction, and whatever the
 * driver throws while another connection holds the write lock for longer than the busy timeout.
 */
export function withImmediateTransaction<Db extends SqliteDatabase, T>(
  database: Db,
  work: (tx: Db) => T,
): Exclude<T, PromiseLike<unknown>> {
  if (isInTransaction(database)) {
    throw new Error("withImmediateTransaction: a transaction is already open on this connection");
  }
  // By exec(), and before any prepared statement writes: a statement that meets SQLITE_BUSY in libsql is not reset, and every
  // later COMMIT on the connection fails until it runs again. Behind the write lock no statement meets it.
  database.exec("BEGIN IMMEDIATE");
  try {
    const result = work(database);
    if (!isSettled(result)) {
      throw new TypeError(
        "withImmediateTransaction: the function must be synchronous, it returned a promise",
      );
    }
    database.exec("COMMIT");
    return result;
  } catch (error) {
    rollBack(database);
    throw error;
  }
}

/** Whether a transaction is open on the connection. */
export function isInTransaction(database: SqliteTransaction): boolean {
  const told = database.inTransaction ?? database.isTransaction;
  if (told !== undefined) return told;
  try {
    // Takes no lock. SQLite refuses it exactly when a transaction is open; node:sqlite before 22.16 tells in no other way.
    database.exec("BEGIN DEFERRED");
  } catch (error) {
    if (String(error).includes("within a transaction")) return true;
    throw error;
  }
  database.exec("COMMIT");
  return false;
}

// After some errors (disk full, I/O) SQLite has rolled back by itself, and ROLLBACK would hide the error that says so.
function rollBack(database: SqliteDatabase): void {
  if (isInTransaction(database)) database.exec("ROLLBACK");
}

function isSettled<T>(value: T): value is Exclude<T, PromiseLike<unknown>> {
  return (
    typeof value !== "object" || value === null || !("then" in value) || typeof value.then !== "function"
  );
}
