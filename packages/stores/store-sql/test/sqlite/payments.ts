import { connectionOf } from "../../dist/sqlite/gated-database.js";
import type { TransactionClaim, TransactionKey } from "@countersign/idempotency";
import { type Connection, type Open, connect, openStores, openLibsql, temporaryFile } from "./connections.ts";

export const key = { key: "payout-7", token: "mine", fingerprint: "f" } as const;

export function claimOf(...keys: readonly TransactionKey[]): TransactionClaim {
  return { keys, recovery: "rerun", leaseMs: 60_000, waitMs: 1_000, idleTimeoutMs: 1_000 };
}

/** Stores beside a table of payouts, in which an id that comes twice ends the transaction. */
export function platform(open: Open = openLibsql, file: string = temporaryFile()) {
  const database = connect(file, open);
  database.exec("CREATE TABLE IF NOT EXISTS payouts (id TEXT PRIMARY KEY ON CONFLICT ROLLBACK) STRICT");
  const stores = openStores(database);
  return {
    ...stores,
    file,
    database,
    paid: () =>
      database
        .prepare("SELECT id FROM payouts ORDER BY id")
        .all()
        .map((row) => (row as { id: string }).id),
  };
}

export function insert(tx: Connection, id: string): void {
  tx.prepare("INSERT INTO payouts VALUES (?)").run(id);
}

/** Sends a text that a handler's `tx` does not take: what a store does when one gets through all the same. */
export function pastGate(tx: Connection, text: string): void {
  (connectionOf(tx) as Connection).exec(text);
}

export async function failureOf(call: Promise<unknown>): Promise<unknown> {
  try {
    await call;
  } catch (error) {
    return error;
  }
  throw new Error("it must fail");
}
