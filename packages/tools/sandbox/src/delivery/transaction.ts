import type Database from "libsql";

/**
 * Runs `work`, which must be synchronous, in the open transaction or in one of its own that takes the write lock at once. Throws
 * when the database is closed.
 */
export function atomically<T>(database: Database.Database, work: () => T): T {
  // The driver ends the whole process when a closed database is asked for its transaction.
  if (!database.open) throw new Error("the database is closed, and so is the service on it");
  return database.inTransaction ? work() : database.transaction(work).immediate();
}
