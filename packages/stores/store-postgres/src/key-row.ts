import type { IdempotencyClaimResult } from "@countersign/idempotency";
import { decodeText, storedRecords, type Row, type StoredRecord } from "@countersign/idempotency/store";
import { integerOf, millisecondsOf } from "./queryable.ts";

export function storedOf(row: Row): StoredRecord {
  return storedRecords.ofRow(row, {
    fence: integerOf(row["fence"]),
    remainingMs: millisecondsOf(row["remaining_seconds"]),
    integerOf,
  });
}

/** Answers a claim by the row that it wrote: it has the key, it cut another owner's lease, or it held an expired run. */
export function claimedOf(row: Row): IdempotencyClaimResult {
  const isRun = row["state"] === "run";
  if (isRun && row["is_own"] === true) return { status: "acquired", fence: integerOf(row["fence"]) };
  const fingerprint = decodeText(String(row["fingerprint"]));
  if (isRun) {
    return { status: "in-flight", fingerprint, remainingMs: millisecondsOf(row["remaining_seconds"]) };
  }
  return { status: "held", fingerprint, reason: decodeText(String(row["reason"])) };
}
