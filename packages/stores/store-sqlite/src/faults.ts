import { isGuardError } from "@countersign/core";
import type { TransactionFault } from "@countersign/idempotency";
import { wrappedErrors } from "@countersign/idempotency/store";

/** BEGIN was tried for too long: another connection has the write lock. */
export class WriteLockError extends Error {}

/** Primary result codes, as https://www.sqlite.org/rescode.html numbers them, in the low byte of every extended code. */
const numbered: Readonly<Record<number, string>> = {
  5: "BUSY",
  6: "LOCKED",
  7: "NOMEM",
  8: "READONLY",
  10: "IOERR",
  11: "CORRUPT",
  13: "FULL",
  14: "CANTOPEN",
  15: "PROTOCOL",
  26: "NOTADB",
};

const faults: Readonly<Record<string, TransactionFault>> = {
  BUSY: "conflict",
  // By a statement of the same connection, or in a shared cache: no other transaction, so the same again meets it again.
  LOCKED: "locked",
  NOMEM: "unavailable",
  READONLY: "unavailable",
  IOERR: "unavailable",
  CORRUPT: "unavailable",
  FULL: "unavailable",
  CANTOPEN: "unavailable",
  PROTOCOL: "unavailable",
  NOTADB: "unavailable",
};

/** What an error of SQLite means for its transaction. Undefined for any other error. */
export function faultOf(error: unknown): TransactionFault | undefined {
  // Such as `transaction-broken`: with the cause's fault it would be run again.
  if (isGuardError(error)) return undefined;
  for (const wrapped of wrappedErrors(error)) {
    if (wrapped instanceof WriteLockError) return "locked";
    const result = resultOf(wrapped);
    if (result !== undefined) return faults[result] ?? "refused";
  }
  return undefined;
}

/** The primary result, such as BUSY; of one that is not in the table, anything. */
function resultOf(error: object): string | undefined {
  const { code, errcode }: { code?: unknown; errcode?: unknown } = error;
  // node:sqlite has one code for all errors, and the number beside it.
  if (code === "ERR_SQLITE_ERROR")
    return (typeof errcode === "number" && numbered[errcode & 0xff]) || "ERROR";
  if (typeof code !== "string" || !code.startsWith("SQLITE_")) return undefined;
  // libsql and better-sqlite3: SQLITE_BUSY, and extended SQLITE_BUSY_SNAPSHOT.
  return code.split("_")[1];
}
