import { assertOpen } from "@countersign/store-core";
import type { SqliteDatabase } from "./driver.ts";
import { isInTransaction } from "./transaction.ts";

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
