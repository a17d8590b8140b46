import type Database from "libsql";

/** Runs `work`, which must be synchronous, in the open transaction or in one of its own that takes the write lock at once. */
export function atomically<T>(database: Database.Database, work: () => T): T {
  return database.inTransaction ? work() : database.transaction(work).immediate();
}
