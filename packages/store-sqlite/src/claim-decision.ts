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
  | { readonly action: "shorten"; readonly untilMs: number; readonly result: IdempotencyClaimResult }
  | { readonly action: "hold"; readonly row: KeyRow };

/** The reason recorded for a lease that expired; the literal of the guard, whose code is not needed at run time. */
export const leaseExpiredReason: typeof leaseExpired = "lease-expired";

/** The state machine at a claim. Reads nothing and writes nothing. */
export function decideClaim({ row, nowMs, fenceFloor }: Sighting, claim: IdempotencyClaim): ClaimDecision {
  // By the clock a fence is also above those that a restored backup has not seen, by the last one above those of a clock that
  // was set back.
  const takeAbove = (last: number): ClaimDecision => {
    const fence = Math.max(last + 1, nowMs * 1_000);
    return { action: "take", fence, fingerprint: claim.fingerprint };
  };
  if (row === undefined) return takeAbove(fenceFloor);
  const { state, fence, fingerprint, reason, untilMs } = row;
  if (state === "free" || (state === "done" && untilMs <= nowMs)) return takeAbove(fence);
  if (state === "done") return { action: "answer", result: { status: "done", fingerprint } };
  if (state === "held") return { action: "answer", result: { status: "held", fingerprint, reason } };
  // The same attempt again, after a lost reply: it must never see itself as somebody else.
  if (row.token === claim.token) return { action: "take", fence, fingerprint };
  if (untilMs > nowMs) {
    // More than one lease remains when the clock was set back: a dead owner would keep the key for as long.
    const remainingMs = Math.min(untilMs - nowMs, claim.leaseMs);
    const result: IdempotencyClaimResult = { status: "in-flight", fingerprint, remainingMs };
    const cutMs = nowMs + remainingMs;
    return cutMs < untilMs ? { action: "shorten", untilMs: cutMs, result } : { action: "answer", result };
  }
  return claim.recovery === "rerun" ? takeAbove(fence) : { action: "hold", row };
}
