import { decideClaim, leaseExpired } from "@countersign/idempotency/store";
import type { IdempotencyClaim, IdempotencyClaimResult } from "@countersign/idempotency";
import { storedOf, type KeyRow, type SeenRow } from "./key-row.ts";

/** What becomes of a claim. */
export interface RowDecision {
  readonly answer: IdempotencyClaimResult;
  /** The row from now on; undefined when the answer changes nothing. */
  readonly write?: KeyRow | undefined;
}

// #region decide
/**
 * What a claim makes of the row of its key. `floor` is the highest fence of a pruned key. A decision with a `write` is one only under
 * a lock on the row.
 */
export function decideRow(row: SeenRow, claim: IdempotencyClaim, floor: number): RowDecision {
  const decision = decideClaim(storedOf(row), claim);
  const untilUs = row.nowUs + claim.leaseMs * 1_000;
  if (decision.action === "take") {
    // Above all that this key had, above all that pruning has removed, and at least the time: above those that this server has
    // never seen, because the one before it failed with them.
    const fence = Math.max(row.fence + 1, floor + 1, row.nowUs);
    const { token, fingerprint } = claim;
    return {
      answer: { status: "acquired", fence },
      write: { state: "run", token, fence, fingerprint, reason: "", untilUs },
    };
  }
  const { action, result: answer } = decision;
  if (action === "answer") return { answer };
  return {
    answer,
    write: action === "lease" ? { ...row, untilUs } : { ...row, state: "held", reason: leaseExpired },
  };
}
// #endregion decide
