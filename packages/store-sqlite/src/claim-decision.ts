import type { IdempotencyClaim, IdempotencyClaimResult, leaseExpired } from "@countersign/idempotency-guard";

/** The row of a key. `free` is absent to every reader: only its fence is remembered. */
export interface KeyRow {
  readonly state: "run" | "held" | "done" | "free";
  readonly token: string;
  readonly fence: number;
  readonly fingerprint: string;
  readonly reason: string;
  readonly untilMs: number;
}

/** What was read about a key, with the time of the reading and the fence below which no new key may begin. */
export interface Sighting {
  readonly row: KeyRow | undefined;
  readonly nowMs: number;
  readonly fenceFloor: number;
}

/** What to do about a claim: only answer, or write the key first. */
export type ClaimDecision =
  | { readonly action: "answer"; readonly result: IdempotencyClaimResult }
  | { readonly action: "take"; readonly fence: number; readonly fingerprint: string }
  | { readonly action: "hold"; readonly row: KeyRow };

/** The reason recorded for a lease that expired; the literal of the guard, whose code is not needed at run time. */
export const leaseExpiredReason: typeof leaseExpired = "lease-expired";

/** The state machine at a claim. Reads nothing and writes nothing. */
export function decideClaim({ row, nowMs, fenceFloor }: Sighting, claim: IdempotencyClaim): ClaimDecision {
  const take = (fence: number): ClaimDecision => ({ action: "take", fence, fingerprint: claim.fingerprint });
  if (row === undefined) return take(fenceFloor + 1);
  const { state, fence, fingerprint, reason, untilMs } = row;
  if (state === "free" || (state === "done" && untilMs <= nowMs)) return take(fence + 1);
  if (state === "done") return { action: "answer", result: { status: "done", fingerprint } };
  if (state === "held") return { action: "answer", result: { status: "held", fingerprint, reason } };
  // The same attempt again, after a lost reply: it must never see itself as somebody else.
  if (row.token === claim.token) return { action: "take", fence, fingerprint };
  if (untilMs > nowMs) {
    return { action: "answer", result: { status: "in-flight", fingerprint, remainingMs: untilMs - nowMs } };
  }
  return claim.recovery === "rerun" ? take(fence + 1) : { action: "hold", row };
}
