import { setTimeout as pause } from "node:timers/promises";
import { OptionError } from "@countersign/core";
import {
  type SqliteDatabase,
  type SqliteRow,
  beginImmediate,
  integerOf,
  isInTransaction,
  singleRow,
} from "./connection.ts";
import { WriteLockError, faultOf } from "./faults.ts";

const fullSynchronous = 2;
const minBusyTimeoutMs = 5000;
const beginWithinMs = 5_000;
const longestPauseMs = 50;

/** Sets WAL, synchronous FULL or EXTRA, and a busy timeout of five seconds or more. Reads each back; throws when one was not taken. */
export function ensureDurability(
  factoryName: string,
  database: SqliteDatabase,
  allowInProduction: boolean,
): void {
  if (isInTransaction(database)) {
    throw new Error(`${factoryName}: a transaction is open on the connection; create the stores before it`);
  }
  ensureClock(factoryName, database);
  if (busyTimeoutMs(database) < minBusyTimeoutMs) database.exec(`PRAGMA busy_timeout = ${minBusyTimeoutMs}`);
  if (busyTimeoutMs(database) < minBusyTimeoutMs) {
    throw new Error(`${factoryName}: busy_timeout stays below ${minBusyTimeoutMs} ms`);
  }
  ensureJournal(factoryName, database, allowInProduction);
  if (synchronousLevel(database) < fullSynchronous) database.exec("PRAGMA synchronous = FULL");
  assertSynchronous(factoryName, database);
}

/** Throws unless every commit on this connection is flushed to the disk before it is reported. */
function assertSynchronous(caller: string, database: SqliteDatabase): void {
  const level = synchronousLevel(database);
  if (level < fullSynchronous) {
    throw new Error(
      `${caller}: synchronous is ${level} on this connection, so a power failure can undo a commit; ` +
        "run PRAGMA synchronous = FULL on it after opening it",
    );
  }
}

function ensureJournal(factoryName: string, database: SqliteDatabase, allowInProduction: boolean): void {
  const mode = String(pragma(database, "journal_mode = WAL")["journal_mode"]);
  const lasting = !isTemporary(database);
  if (mode !== "wal" && (lasting || mode !== "memory")) {
    throw new Error(
      `${factoryName}: journal_mode stays ${mode}; the database must be a local file that can use WAL`,
    );
  }
  if (!lasting && process.env["NODE_ENV"] === "production" && !allowInProduction) {
    const what =
      "a database in memory forgets every paid key on restart; " +
      "open a file in production, or set allowInProduction: true";
    throw new OptionError(factoryName, { what });
  }
}

function ensureClock(factoryName: string, database: SqliteDatabase): void {
  const query = "SELECT sqlite_version() AS version, typeof(unixepoch('now', 'subsec')) AS clock";
  const row = singleRow(database.prepare(query).get());
  if (row["clock"] !== "real") {
    throw new Error(`${factoryName}: SQLite ${String(row["version"])} is too old, 3.42 or newer is needed`);
  }
}

// In memory, or on a file that SQLite deletes with the connection: neither has a name.
function isTemporary(database: SqliteDatabase): boolean {
  const query = "SELECT coalesce(file, '') AS file FROM pragma_database_list WHERE name = 'main'";
  return singleRow(database.prepare(query).get())["file"] === "";
}

function synchronousLevel(database: SqliteDatabase): number {
  return integerOf(pragma(database, "synchronous")["synchronous"]);
}

function busyTimeoutMs(database: SqliteDatabase): number {
  return integerOf(pragma(database, "busy_timeout")["timeout"]);
}

function pragma(database: SqliteDatabase, text: string): SqliteRow {
  return singleRow(database.prepare(`PRAGMA ${text}`).get());
}

interface Writer {
  /** Begins messages. */
  readonly name: string;
  readonly database: SqliteDatabase;
  /** Throws while no transaction may be opened. */
  readonly assertUsable: () => void;
}

/**
 * Opens a transaction with the write lock and calls `work` in it, which ends it. Waits at most five seconds, while the event loop goes on;
 * then throws a WriteLockError.
 */
export async function whenWritable<T>({ name, database, assertUsable }: Writer, work: () => T): Promise<T> {
  const deadlineMs = performance.now() + beginWithinMs;
  for (let pauseMs = 1; ; pauseMs = Math.min(pauseMs * 2, longestPauseMs)) {
    // Again after each pause: others use the connection meanwhile.
    assertUsable();
    const busy = beginNow(name, database);
    // In the turn of BEGIN: across an await, another request would run inside the transaction.
    if (busy === undefined) return work();
    if (performance.now() >= deadlineMs) {
      const message = `${name}: another connection has had the write lock for ${beginWithinMs} ms`;
      throw new WriteLockError(message, { cause: busy });
    }
    // oxlint-disable-next-line no-await-in-loop -- one attempt after the other
    await pause(pauseMs * (0.5 + Math.random()));
  }
}

/** Opens a transaction with the write lock, or returns the error that another connection has it. */
function beginNow(name: string, database: SqliteDatabase): unknown {
  const timeoutMs = busyTimeoutMs(database);
  // A wait in SQLite would stop every other request of this process.
  database.exec("PRAGMA busy_timeout = 0");
  try {
    beginImmediate(database);
  } catch (error) {
    if (faultOf(error) === "conflict") return error;
    throw error;
  } finally {
    database.exec(`PRAGMA busy_timeout = ${timeoutMs}`);
  }
  if (!isInTransaction(database)) {
    throw new TypeError(
      `${name}: BEGIN opens no transaction on this connection; give one that no pool shares`,
    );
  }
  return undefined;
}
