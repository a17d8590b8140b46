import { closeSync, openSync } from "node:fs";
import path from "node:path";
import Database from "libsql";
import { readThrown } from "../../loopback/index.ts";

/** The message is one line and says why. */
export class SandboxDatabaseError extends Error {
  override readonly name: string = "SandboxDatabaseError";
}

// Marks the file (https://www.sqlite.org/fileformat.html, offset 68), so that no other program's database is written into.
const applicationId = 0x43_53_62_78;
const busyTimeoutMs = 500;

/** Opens the database for one connection: two services would send everything twice. Throws a SandboxDatabaseError. */
export function openDatabase(file: string): Database.Database {
  try {
    return open(file === ":memory:" ? file : preparedFile(file));
  } catch (error) {
    throw new SandboxDatabaseError(`the database ${JSON.stringify(file)} ${reasonOf(error)}`, {
      cause: error,
    });
  }
}

function open(file: string): Database.Database {
  const database = new Database(file);
  try {
    database.exec(`PRAGMA busy_timeout = ${busyTimeoutMs}`);
    refuseOthers(database);
    database.exec("PRAGMA locking_mode = EXCLUSIVE");
    database.exec("PRAGMA journal_mode = WAL");
    // The first write takes the lock for good.
    database.transaction(() => database.exec(`PRAGMA application_id = ${applicationId}`)).immediate();
    return database;
  } catch (error) {
    database.close();
    throw error;
  }
}

/** Leaves one file without a write-ahead log. */
export function closeDatabase(database: Database.Database): void {
  // While prepared statements exist, libsql keeps the connection and its locks beyond close(). A lock that was taken for the
  // write-ahead log is given back after leaving that mode, by the first read.
  try {
    database.exec("PRAGMA journal_mode = DELETE");
    database.exec("PRAGMA locking_mode = NORMAL");
    database.exec("SELECT count(*) FROM sqlite_schema");
  } finally {
    database.close();
  }
}

function refuseOthers(database: Database.Database): void {
  const [id] = database.prepare("PRAGMA application_id").pluck().all();
  const [tables] = database.prepare("SELECT count(*) FROM sqlite_schema").pluck().all();
  const isNew = id === 0 && tables === 0;
  if (id !== applicationId && !isNew) throw new SandboxDatabaseError("belongs to another program");
}

// The file will hold the credentials of webhook endpoints, so its owner alone can read it. Absolute, as libsql takes what
// looks like a URL for the address of a server.
function preparedFile(file: string): string {
  const absolute = path.resolve(file);
  try {
    closeSync(openSync(absolute, "ax", 0o600));
  } catch (error) {
    // Opening a file that exists and closing it again would drop the locks that this process has on it.
    if (readThrown(error).code !== "EEXIST") throw error;
  }
  return absolute;
}

const reasons: ReadonlyMap<string, string> = new Map([
  ["SQLITE_BUSY", "is in use by another sandbox"],
  ["SQLITE_NOTADB", "is no SQLite database"],
  ["ENOENT", "cannot be created: its folder does not exist"],
]);

function reasonOf(error: unknown): string {
  if (error instanceof SandboxDatabaseError) return error.message;
  const { message, code } = readThrown(error);
  return reasons.get(code) ?? `cannot be opened (${message.replaceAll(/\s+/g, " ")})`;
}
