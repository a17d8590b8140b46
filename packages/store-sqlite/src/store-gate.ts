import type { SqliteDatabase } from "./driver.ts";
import { isInTransaction } from "./transaction.ts";

/** Throws after close. */
export function assertOpen(store: string, closed: boolean): void {
  if (closed) throw new Error(`${store}: the store is closed`);
}

/** Throws unless the store may use its connection now. */
export function assertUsable(store: string, database: SqliteDatabase, closed: boolean): void {
  assertOpen(store, closed);
  // Inside the caller's transaction a claim could be rolled back after it was answered, and a read could see a `done` that
  // never commits, for which the sender would be told that it was paid.
  if (isInTransaction(database)) {
    throw new Error(
      `${store}: a transaction is open on the store's connection; keep transactions synchronous, ` +
        "or give the store a connection of its own",
    );
  }
}

/** Throws a TypeError unless `text` is a string of 1 to 512 characters: drivers would bind an object as parameters of their own. */
export function assertText(store: string, name: string, text: unknown): void {
  if (typeof text !== "string" || text.length === 0 || text.length > 512) {
    throw new TypeError(`${store}: ${name} must be a string of 1 to 512 characters`);
  }
}

/** Throws a TypeError unless `durationMs` is a whole number of milliseconds above zero. */
export function assertDuration(store: string, name: string, durationMs: unknown): void {
  if (typeof durationMs !== "number" || !Number.isSafeInteger(durationMs) || durationMs <= 0) {
    throw new TypeError(`${store}: ${name} must be a whole number of milliseconds above 0`);
  }
}
