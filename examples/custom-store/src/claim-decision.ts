import { leaseExpired, type IdempotencyClaim, type IdempotencyClaimResult } from "@countersign/idempotency";
import { isLive, remainingMsOf, type KeyRow, type SeenRow } from "./key-row.ts";

/** What becomes of a claim. */
export interface ClaimDecision {
  readonly answer: IdempotencyClaimResult;
  /** The row from now on; undefined when the answer changes nothing. */
  readonly write?: KeyRow | undefined;
}

/**
 * What a claim is answered by the row of its key. `floor` is the highest fence of a pruned key. A decision with a `write` is one only
 * under a lock on the row.
 */
export function decideClaim(row: SeenRow, claim: IdempotencyClaim, floor: number): ClaimDecision {
  const { state, fingerprint, fence, reason, nowUs } = row;
  const { token, leaseMs, recovery } = claim;
  const untilUs = nowUs + leaseMs * 1_000;
  if (state === "held") return { answer: { status: "held", fingerprint, reason } };
  if (state === "done" && isLive(row)) return { answer: { status: "done", fingerprint } };
  // The same attempt again, after a lost reply: it must never see itself as somebody else, also when its lease has expired.
  if (state === "run" && row.token === token) {
    return { answer: { status: "acquired", fence }, write: { ...row, untilUs } };
  }
  if (state === "run" && isLive(row)) {
    const remainingMs = remainingMsOf(row);
    if (row.untilUs <= untilUs) return { answer: { status: "in-flight", fingerprint, remainingMs } };
    // More than a lease is left where the clock was set back since. It is cut, for the owner may be dead.
    return {
      answer: { status: "in-flight", fingerprint, remainingMs: leaseMs },
      write: { ...row, untilUs },
    };
  }
  // Whatever is not clearly `rerun` leaves an expired run to an operator.
  if (state === "run" && recovery !== "rerun") {
    return {
      answer: { status: "held", fingerprint, reason: leaseExpired },
      write: { ...row, state: "held", reason: leaseExpired },
    };
  }
  // Above all that this key had, above all that pruning has removed, and at least the time: above those that this server has never
  // seen, because the one before it failed with them.
  const next = Math.max(fence + 1, floor + 1, nowUs);
  return {
    answer: { status: "acquired", fence: next },
    write: { state: "run", token, fence: next, fingerprint: claim.fingerprint, reason: "", untilUs },
  };
}
