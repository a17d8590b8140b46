import { isGuardError } from "@countersign/core";
import type { TransactionFault } from "@countersign/idempotency";
import { wrappedErrors } from "@countersign/idempotency/store";

/** BEGIN was tried for too long: another connection has the write lock. */
export class WriteLockError extends Error {}

/**
 * What a primary result means, by the number that https://www.sqlite.org/rescode.html gives it, in the low byte of every extended code. The
 * rest is `refused`. LOCKED is by a statement of the same connection, or in a shared cache: no other transaction, so the same again meets it.
 */
const results: readonly (readonly [number: number, name: string, fault: TransactionFault])[] = [
  [5, "BUSY", "conflict"],
  [6, "LOCKED", "locked"],
  [7, "NOMEM", "unavailable"],
  [8, "READONLY", "unavailable"],
  [10, "IOERR", "unavailable"],
  [11, "CORRUPT", "unavailable"],
  [13, "FULL", "unavailable"],
  [14, "CANTOPEN", "unavailable"],
  [15, "PROTOCOL", "unavailable"],
  [26, "NOTADB", "unavailable"],
];

/** What an error of SQLite means for its transaction. Undefined for any other error. */
export function faultOf(error: unknown): TransactionFault | undefined {
  // Such as `transaction-broken`: with the cause's fault it would be run again.
  if (isGuardError(error)) return undefined;
  for (const wrapped of wrappedErrors(error)) {
    if (wrapped instanceof WriteLockError) return "locked";
    const result = resultOf(wrapped);
    if (result !== undefined) return results.find((known) => known.includes(result))?.[2] ?? "refused";
  }
  return undefined;
}

/** The primary result, by its number or its name. */
function resultOf(error: object): number | string | undefined {
  const { code, errcode }: { code?: unknown; errcode?: unknown } = error;
  // node:sqlite has one code for all errors, and the number beside it.
  if (code === "ERR_SQLITE_ERROR") return typeof errcode === "number" ? errcode & 0xff : "ERROR";
  if (typeof code !== "string" || !code.startsWith("SQLITE_")) return undefined;
  // libsql and better-sqlite3: SQLITE_BUSY, and extended SQLITE_BUSY_SNAPSHOT.
  return code.split("_")[1];
}
