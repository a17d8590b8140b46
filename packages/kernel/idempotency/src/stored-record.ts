import {
  leaseExpired,
  type IdempotencyClaim,
  type IdempotencyClaimResult,
  type IdempotencyDecision,
  type IdempotencyRecord,
  type KeptDecision,
  type OperatorEntry,
  type ReleasedKey,
} from "./store.ts";

/** What a store keeps about a key. */
export interface StoredRecord {
  /** `free` is absent to every reader: only its fence is remembered. */
  readonly state: IdempotencyRecord["state"] | "free";
  readonly token: string;
  readonly fence: number;
  readonly fingerprint: string;
  /** Why the key is held; empty in every other state. */
  readonly reason: string;
  /** Of the lease, or of what is remembered, in milliseconds on the store's clock. At 0 it is over. */
  readonly remainingMs: number;
  /** The last decision of an operator; a claim leaves it as it is. */
  readonly decision?: KeptDecision | undefined;
}

/** What becomes of a claim. What writes is decided under a lock on the record, or once more by the statement that writes it. */
export type ClaimDecision =
  /** Nothing is written. */
  | { readonly action: "answer"; readonly result: IdempotencyClaimResult }
  /** The lease of the run ends after one `leaseMs` from now; all else stays. */
  | { readonly action: "lease"; readonly result: IdempotencyClaimResult }
  /** The run is held for {@link leaseExpired}; all else stays. */
  | { readonly action: "hold"; readonly result: IdempotencyClaimResult }
  /** The claim owns the key from now on, with a fence above every one that the key has had. */
  | { readonly action: "take" };

/** The state machine at a claim. Reads nothing and writes nothing. */
export function decideClaim(
  stored: StoredRecord | undefined,
  { token, leaseMs, recovery }: IdempotencyClaim,
): ClaimDecision {
  if (stored === undefined || stored.state === "free") return { action: "take" };
  const { state, fence, fingerprint, reason, remainingMs } = stored;
  if (state === "held") return { action: "answer", result: { status: "held", fingerprint, reason } };
  if (state === "done") {
    return remainingMs > 0
      ? { action: "answer", result: { status: "done", fingerprint } }
      : { action: "take" };
  }
  // The same attempt again, after a lost reply: it must never see itself as somebody else, also when its lease has expired.
  if (stored.token === token) return { action: "lease", result: { status: "acquired", fence } };
  if (remainingMs > leaseMs) {
    // The clock was set back since: a dead owner would keep the key for as long as it has to catch up.
    return { action: "lease", result: { status: "in-flight", fingerprint, remainingMs: leaseMs } };
  }
  if (remainingMs > 0) return { action: "answer", result: { status: "in-flight", fingerprint, remainingMs } };
  // Whatever is not clearly `rerun` leaves an expired run to an operator.
  if (recovery === "rerun") return { action: "take" };
  return { action: "hold", result: { status: "held", fingerprint, reason: leaseExpired } };
}

/** The record as its readers see it; undefined when the key is absent to them. */
export function recordOf({
  state,
  token,
  fence,
  fingerprint,
  reason,
  remainingMs,
  decision,
}: StoredRecord): IdempotencyRecord | undefined {
  const decided = decision === undefined ? {} : { decision };
  if (state === "run") return { state, token, fence, fingerprint, remainingMs, ...decided };
  if (state === "held") return { state, token, fence, fingerprint, reason, ...decided };
  return state === "done" && remainingMs > 0 ? { state, token, fence, fingerprint, ...decided } : undefined;
}

/** What {@link IdempotencyStore.readReleased} gives of the record. */
export function releasedOf(stored: StoredRecord | undefined): ReleasedKey | undefined {
  if (stored?.state !== "free" || stored.decision === undefined || stored.remainingMs <= 0) return undefined;
  const { state, fence, fingerprint, decision } = stored;
  return { state, fence, fingerprint, decision };
}

/**
 * Throws a TypeError unless `decision` has the fence of the attempt that it is about, and no other texts than a store keeps: `by` in
 * 1 to 128 characters, `note` in 1 to 512. `store` begins the message.
 */
export function assertDecision(store: string, decision: unknown): asserts decision is IdempotencyDecision {
  const { fence, by, note }: Readonly<Record<string, unknown>> = Object(decision);
  if (typeof fence !== "number" || !Number.isSafeInteger(fence) || fence < 0) {
    throw new TypeError(`${store}: a decision needs { fence }, that of the record that was read`);
  }
  assertEntryText(store, { name: "by", text: by, max: 128 });
  assertEntryText(store, { name: "note", text: note, max: 512 });
}

interface EntryText {
  readonly name: string;
  readonly text: unknown;
  readonly max: number;
}

function assertEntryText(store: string, { name, text, max }: EntryText): void {
  if (text === undefined || (typeof text === "string" && text.length >= 1 && text.length <= max)) return;
  throw new TypeError(`${store}: ${name} must be a string of 1 to ${max} characters`);
}

/** The entry of who decided or reopened at this time; without the members that were not given. */
export function operatorEntry({ by, note }: Partial<OperatorEntry>, at: number): OperatorEntry {
  return { at, ...(by === undefined ? {} : { by }), ...(note === undefined ? {} : { note }) };
}
