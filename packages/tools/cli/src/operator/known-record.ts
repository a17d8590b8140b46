import type { IdempotencyListing, IdempotencyRecord, ReleasedKey } from "@countersign/idempotency";

/** A key and what the store knows of it. */
export type KeyEntry = IdempotencyListing["entries"][number];

/** What a store knows of a key, also of one that an operator has released. */
export type KnownRecord = IdempotencyRecord | ReleasedKey;

/** What is shown of a record: not the token, with which a stranger could end the attempt. */
export function shownRecord(record: KnownRecord): object {
  if (record.state === "free") return record;
  const { token: _token, ...shown } = record;
  return shown;
}

/** Whether an operator has to decide. */
export function isUndecided(record: KnownRecord): boolean {
  return record.state === "held" || (record.state === "run" && record.remainingMs <= 0);
}

/** Whether the key is as an operator has decided, and no attempt has had it since. */
export function isDecided({ state, fence, decision }: KnownRecord): boolean {
  return (state === "done" || state === "free") && decision?.fence === fence;
}
