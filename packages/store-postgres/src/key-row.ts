import type {
  IdempotencyClaim,
  IdempotencyClaimResult,
  IdempotencyRecord,
} from "@countersign/idempotency-guard";
import { decodeText } from "@countersign/store-core";
import { type Row, integerOf, millisecondsOf } from "./queryable.ts";

/** The row of a key. `free` is absent to every reader: only its fence is remembered. */
export interface KeyRow {
  readonly state: "run" | "held" | "done" | "free";
  readonly token: string;
  readonly fence: number;
  readonly fingerprint: string;
  readonly reason: string;
  /** Of the lease, or of what is remembered. At 0 it is over. */
  readonly remainingMs: number;
}

/** The row as the database gives it. */
export function keyRow(row: Row | undefined): KeyRow | undefined {
  return row === undefined ? undefined : parseKeyRow(row);
}

function parseKeyRow(row: Row): KeyRow {
  return {
    state: stateOf(row["state"]),
    token: decodeText(String(row["token"])),
    fence: integerOf(row["fence"]),
    fingerprint: decodeText(String(row["fingerprint"])),
    reason: decodeText(String(row["reason"])),
    remainingMs: millisecondsOf(row["remaining_seconds"]),
  };
}

/** The row as its readers see it. */
export function recordOf(row: KeyRow | undefined): IdempotencyRecord | undefined {
  if (row === undefined) return undefined;
  const { state, token, fence, fingerprint, reason, remainingMs } = row;
  if (state === "run") return { state, token, fence, fingerprint, remainingMs };
  if (state === "held") return { state, token, fence, fingerprint, reason };
  return state === "done" && remainingMs > 0 ? { state, token, fence, fingerprint } : undefined;
}

/** What a claim is answered that changes nothing; undefined when it has to write. */
export function answerTo(
  row: KeyRow,
  { token, leaseMs }: Pick<IdempotencyClaim, "token" | "leaseMs">,
): IdempotencyClaimResult | undefined {
  const { state, fingerprint, reason, remainingMs } = row;
  if (state === "held") return { status: "held", fingerprint, reason };
  if (state === "free" || remainingMs <= 0) return undefined;
  if (state === "done") return { status: "done", fingerprint };
  // The same attempt again, after a lost reply: it must never see itself as somebody else.
  if (row.token === token) return undefined;
  // More than a lease is left where the clock was set back since: it has to be cut, for the owner may be dead.
  return remainingMs > leaseMs ? undefined : { status: "in-flight", fingerprint, remainingMs };
}

/**
 * What a claim is answered by the row that it wrote: it has the key, or it cut another one's lease, or it found an expired lease and
 * held the key.
 */
export function claimedOf(row: Row): IdempotencyClaimResult {
  const isRun = row["state"] === "run";
  if (isRun && row["is_own"] === true) return { status: "acquired", fence: integerOf(row["fence"]) };
  const fingerprint = decodeText(String(row["fingerprint"]));
  if (isRun) {
    return { status: "in-flight", fingerprint, remainingMs: millisecondsOf(row["remaining_seconds"]) };
  }
  return { status: "held", fingerprint, reason: decodeText(String(row["reason"])) };
}

function stateOf(state: unknown): KeyRow["state"] {
  if (state === "run" || state === "held" || state === "done" || state === "free") return state;
  throw new Error("the idempotency table holds an unknown state");
}
