// The life of an idempotency key: every transition, once. Nothing here reads a clock or a store. A decision takes the key's row as it was
// seen, and returns the reply, or a change of the row with the reply to give after the change was written. Whoever writes compares the row
// with the one that was seen (key-steps.ts), so that of two decisions about one row only one takes effect. One transition stands twice: the
// last statement of a transaction on PostgreSQL and MySQL says in SQL what transactionEnd() says here, as it has to be one message.
//
//   (no row) ── claim ──> running ── complete ──> done
//                  ^       │    └── hold, or its lease has ended, and its owner or the new claim says "hold" ──> held
//                  └─ free <── release                                                      │
//   held: its owner may still complete it; an operator resolves it as done or free, and reopens what was resolved.
import {
  leaseExpired,
  type IdempotencyClaim,
  type IdempotencyClaimResult,
  type IdempotencyDecision,
  type IdempotencyOwnership,
  type IdempotencyRecord,
  type KeptDecision,
  type OperatorEntry,
  type ReleasedKey,
} from "./store.ts";
import type { KeyBegun, TransactionClaim, TransactionKey } from "./transactions/transaction-store.ts";

export type KeyState = IdempotencyRecord["state"] | "free";

type Recovery = IdempotencyClaim["recovery"];

/** The row of a key. */
export interface KeyRow {
  /** `free`: absent to every reader; the row keeps the fence and an operator's decision. */
  readonly state: KeyState;
  /** The attempt that wrote the state; random where an operator did. */
  readonly token: string;
  /** Grows with each owner of the key. */
  readonly fence: number;
  readonly fingerprint: string;
  /** Why the key is held; otherwise empty. */
  readonly reason: string;
  /** What remains of the lease (running) or of the retention (done, free), in milliseconds by the engine's clock; over at 0. */
  readonly remainingMs: number;
  /**
   * What may follow once the owner's lease has ended: `rerun`, if the next claim says so too. The key of a transaction says `hold`: if its
   * running row is ever visible to others, the transaction was broken, and nobody knows what it has paid.
   */
  readonly recovery: Recovery;
  /** An operator's last decision; a claim keeps it. */
  readonly decision?: KeptDecision | undefined;
}

/** A row as an engine read it. */
export interface SeenRow extends KeyRow {
  /** Raised by every write, also by a renewal: a row that was read before a renewal must not be taken over. */
  readonly version: number;
  /** When the row was read, in integer milliseconds since 1970 by the engine's clock. */
  readonly nowMs: number;
}

/** What a write makes of a row. A member that is left out stays as it is. */
export interface KeyChange {
  readonly state: KeyState;
  readonly reason: string;
  /** The lease or the retention, in milliseconds from now by the engine's clock. */
  readonly durationMs: number;
  readonly token?: string;
  readonly fingerprint?: string;
  readonly recovery?: Recovery;
  /** True for a new owner: the fence becomes the engine's time in microseconds, or one more than the last if that is higher. */
  readonly raisesFence?: boolean;
  /** null removes the decision. */
  readonly decision?: KeptDecision | null;
}

/** The change by which a key gets its first row. */
export type FirstChange = KeyChange & Required<Pick<KeyChange, "token" | "fingerprint" | "recovery">>;

/** `write` is undefined where the row stays. Otherwise `reply` is given after the change was written, with the row's fence. */
export type Decision<Reply, Unwritten extends Reply = Reply> =
  | { readonly write?: undefined; readonly reply: Unwritten }
  | { readonly write: KeyChange; readonly reply: (fence: number) => Reply };

/** Why a claim does not own the key. */
type KeyStanding = Exclude<IdempotencyClaimResult, { readonly status: "acquired" }>;

type ClaimDecision = Decision<IdempotencyClaimResult, KeyStanding>;

/** True for a state that is remembered for a time, and then counts as absent. A running or held key never goes by itself. */
export function expires(state: KeyState): boolean {
  return state === "done" || state === "free";
}

/** True for a row that is only remembered, and no longer has to be: it counts as absent. */
export function isOver({ state, remainingMs }: KeyRow): boolean {
  return expires(state) && remainingMs <= 0;
}

/** Decides a claim of a key that has no row. */
export function decideFirstClaim(claim: IdempotencyClaim): {
  readonly write: FirstChange;
  readonly reply: (fence: number) => IdempotencyClaimResult;
} {
  const { token, fingerprint, leaseMs: durationMs } = claim;
  // Whatever is not clearly `rerun` leaves an expired run to an operator.
  const recovery = claim.recovery === "rerun" ? "rerun" : "hold";
  return {
    write: { state: "running", token, fingerprint, reason: "", durationMs, recovery, raisesFence: true },
    reply: acquired,
  };
}

/** Decides a claim of a key that has a row. */
export function decideClaim(row: KeyRow, claim: IdempotencyClaim): ClaimDecision {
  const { state, token, fingerprint, reason, remainingMs } = row;
  const { leaseMs } = claim;
  if (isOver(row)) return taken(claim, null);
  if (state === "free") return taken(claim);
  if (state === "held") return { reply: { status: "held", fingerprint, reason } };
  if (state === "done") return { reply: { status: "done", fingerprint } };
  const renewed = { state, reason, durationMs: leaseMs };
  // The same attempt again, after a lost reply: it must not collide with itself, not even after its lease.
  if (token === claim.token) return { write: renewed, reply: acquired };
  // The engine's clock was set back: a dead owner would keep the key until the clock has caught up.
  if (remainingMs > leaseMs) {
    return { write: renewed, reply: () => ({ status: "in-flight", fingerprint, remainingMs: leaseMs }) };
  }
  if (remainingMs > 0) return { reply: { status: "in-flight", fingerprint, remainingMs } };
  if (row.recovery === "rerun" && claim.recovery === "rerun") return taken(claim);
  const held: KeyChange = { state: "held", reason: leaseExpired, durationMs: 0 };
  return { write: held, reply: () => ({ status: "held", fingerprint, reason: leaseExpired }) };
}

/** The claim owns the key from now on. */
function taken(claim: IdempotencyClaim, decision?: null): ClaimDecision {
  const { write, reply } = decideFirstClaim(claim);
  return { write: decision === undefined ? write : { ...write, decision }, reply };
}

function acquired(fence: number): IdempotencyClaimResult {
  return { status: "acquired", fence };
}

/** A step that its owner takes without a look at the row. It is written where the row has the owner's token and one of `from`. */
export interface OwnerStep {
  readonly from: readonly KeyState[];
  readonly write: KeyChange;
}

/** The owner's lease ends `leaseMs` from now. */
export function renewal(leaseMs: number): OwnerStep {
  return { from: ["running"], write: { state: "running", reason: "", durationMs: leaseMs } };
}

/** By the last statement of the transaction that has begun the key. */
export function transactionEnd(retentionMs: number): OwnerStep {
  return { from: ["running"], write: { state: "done", reason: "", durationMs: retentionMs } };
}

/** Also from `held`: nobody else has run the key since, and what was in doubt has happened. */
export function completion(retentionMs: number): OwnerStep {
  return { from: ["running", "held"], write: { state: "done", reason: "", durationMs: retentionMs } };
}

/** A transaction never shortens the lease of another owner. */
const longestLeaseMs = Number.MAX_SAFE_INTEGER;

/** A key as a transaction begins it. What commits too early stays running, and comes to an operator. */
export function firstBegin({ token, fingerprint }: TransactionKey, leaseMs: number): FirstChange {
  const begun = { state: "running", token, fingerprint, reason: "" } as const;
  return { ...begun, recovery: "hold", durationMs: leaseMs, raisesFence: true };
}

/** Decides a transaction's claim of a key that has a row. */
export function decideBegin(
  row: KeyRow,
  key: TransactionKey,
  { recovery, leaseMs }: Pick<TransactionClaim, "recovery" | "leaseMs">,
): Decision<KeyBegun> {
  const { token, fingerprint } = key;
  const { write, reply } = decideClaim(row, { token, fingerprint, leaseMs: longestLeaseMs, recovery });
  if (write === undefined) return { reply };
  const answer = reply(row.fence);
  if (answer.status !== "acquired") return { write, reply: () => answer };
  return { write: { ...write, ...firstBegin(key, leaseMs) }, reply: () => ({ status: "begun" }) };
}

/** Why a key is held whose handler has ended its transaction: nobody knows what it has paid. */
export const brokenReason = "transaction-broken";

/** A key without a row whose transaction has ended before its handler did: what the handler wrote since may have committed. */
export function firstBroken({ token, fingerprint }: TransactionKey): FirstChange {
  const held = { state: "held", token, fingerprint, reason: brokenReason } as const;
  return { ...held, recovery: "hold", durationMs: 0, raisesFence: true };
}

/** The same for a key that has a row. Undefined where an attempt has paid it, or an operator has it already. */
export function decideBroken(row: KeyRow, key: TransactionKey): KeyChange | undefined {
  if (isOver(row)) return { ...firstBroken(key), decision: null };
  if (row.state === "free") return firstBroken(key);
  // Where somebody else runs it, their complete() still ends it.
  return row.state === "running" ? { state: "held", reason: brokenReason, durationMs: 0 } : undefined;
}

/**
 * A key of a run that has failed, or has written nothing. Undefined where the row is not the run's own. Nothing is written where it has
 * committed as done: all that paid it has committed with it. `isOpen`: in the run's own transaction, where nothing has committed.
 */
export function decideOwn(
  row: KeyRow | undefined,
  token: string,
  reason: string,
  isOpen: boolean,
): { readonly write?: KeyChange } | undefined {
  if (row?.token !== token || row.state === "free") return undefined;
  if (row.state === "done" && !isOpen) return {};
  return { write: { state: "held", reason, durationMs: 0 } };
}

/** True if this owner has completed the key already: its own completion may have lost its reply. */
export function isCompletedBy(token: string, row: KeyRow | undefined): boolean {
  return row !== undefined && row.token === token && row.state === "done" && !isOver(row);
}

export interface Retentions {
  /** How long a done key, or an operator's decision, is remembered, in milliseconds. */
  readonly retentionMs: number;
  /** How long a released key without a decision keeps its fence, in milliseconds. */
  readonly fenceMemoryMs: number;
}

/** The owner frees its running key. An operator's decision stays as long as one does: no failing retry removes it. */
export function decideRelease(
  row: KeyRow | undefined,
  token: string,
  { retentionMs, fenceMemoryMs }: Retentions,
): Decision<IdempotencyOwnership> {
  if (row?.state !== "running" || row.token !== token) return lost;
  const durationMs = row.decision === undefined ? fenceMemoryMs : retentionMs;
  return { write: { state: "free", reason: "", durationMs }, reply: ok };
}

/** The owner leaves its running key to an operator. */
export function decideHold(
  row: KeyRow | undefined,
  token: string,
  reason: string,
): Decision<IdempotencyOwnership> {
  if (row?.state !== "running" || row.token !== token) return lost;
  return { write: { state: "held", reason, durationMs: 0 }, reply: ok };
}

const lost: Decision<"lost"> = { reply: "lost" };

function ok(): "ok" {
  return "ok";
}

/** What an operator decides, or takes back. */
export interface OperatorStep extends IdempotencyDecision {
  /** Random, one for each call. The row gets it, so that neither the old owner nor a repetition can change the key again. */
  readonly token: string;
}

/** An operator ends a held key, or a running one whose lease has ended. */
export function decideResolve(
  row: SeenRow | undefined,
  outcome: KeptDecision["outcome"],
  { token, fence, by, note }: OperatorStep,
  retentionMs: number,
): Decision<"ok" | "not-held"> {
  if (row === undefined || row.fence !== fence) return { reply: "not-held" };
  if (row.token === token) return { reply: "ok" };
  const isExpired = row.state === "running" && row.remainingMs <= 0;
  if (row.state !== "held" && !isExpired) return { reply: "not-held" };
  const reason = isExpired ? leaseExpired : row.reason;
  const decision = { ...operatorEntry({ by, note }, row.nowMs), outcome, fence, reason };
  const state = outcome === "done" ? "done" : "free";
  return { write: { state, token, reason: "", durationMs: retentionMs, decision }, reply: ok };
}

/** An operator takes a decision back: the key is held again. With the old fence, a decision that is sent again would decide anew. */
export function decideReopen(
  row: SeenRow | undefined,
  { token, fence, by, note }: OperatorStep,
): Decision<"ok" | "not-decided"> {
  if (row?.state === "held" && row.token === token) return { reply: "ok" };
  const isEnded = (row?.state === "done" || row?.state === "free") && row.remainingMs > 0;
  // A later attempt has a fence of its own: what an attempt itself has done is not taken back.
  if (!isEnded || row.fence !== fence || row.decision?.fence !== fence) return { reply: "not-decided" };
  const { reason } = row.decision;
  const decision = { ...row.decision, reopened: operatorEntry({ by, note }, row.nowMs) };
  return { write: { state: "held", token, reason, durationMs: 0, raisesFence: true, decision }, reply: ok };
}

/** The record as readers see it; undefined for an absent key. */
export function recordOf(row: KeyRow | undefined): IdempotencyRecord | undefined {
  if (row === undefined || row.state === "free" || isOver(row)) return undefined;
  const { state, token, fence, fingerprint, reason, remainingMs, decision } = row;
  const decided = decision === undefined ? {} : { decision };
  if (state === "running") return { state, token, fence, fingerprint, remainingMs, ...decided };
  if (state === "held") return { state, token, fence, fingerprint, reason, ...decided };
  return { state, token, fence, fingerprint, ...decided };
}

/** For {@link IdempotencyStore.readReleased}. */
export function releasedOf(row: KeyRow | undefined): ReleasedKey | undefined {
  if (row?.state !== "free" || row.decision === undefined || isOver(row)) return undefined;
  const { state, fence, fingerprint, decision } = row;
  return { state, fence, fingerprint, decision };
}

/** Who decided or reopened at this time; without members that were not given. */
export function operatorEntry({ by, note }: Partial<OperatorEntry>, at: number): OperatorEntry {
  return { at, ...(by === undefined ? {} : { by }), ...(note === undefined ? {} : { note }) };
}
