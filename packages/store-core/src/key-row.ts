import type { StoredRecord } from "@countersign/idempotency";
import { decodeText } from "./store-gate.ts";

/** For how long a released key is remembered for its fence: longer than any claim can be under way that has not seen the release. */
export const fenceMemoryMs = 86_400_000;

/** A row by column name. */
export type Row = Readonly<Record<string, unknown>>;

/**
 * The record of a row, from its columns `state`, `token`, `fingerprint` and `reason`: strings that `encodeText` made, never Buffers.
 * Its numbers come as the caller read them. Throws at an unknown state.
 */
export function storedRecord(
  row: Row,
  { fence, remainingMs }: Pick<StoredRecord, "fence" | "remainingMs">,
): StoredRecord {
  return {
    state: stateOf(row["state"]),
    token: decodeText(String(row["token"])),
    fence,
    fingerprint: decodeText(String(row["fingerprint"])),
    reason: decodeText(String(row["reason"])),
    remainingMs,
  };
}

function stateOf(state: unknown): StoredRecord["state"] {
  if (state === "run" || state === "held" || state === "done" || state === "free") return state;
  throw new Error("the idempotency table holds an unknown state");
}
