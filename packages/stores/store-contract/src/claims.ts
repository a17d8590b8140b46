import assert from "node:assert/strict";
import type {
  IdempotencyClaim,
  IdempotencyClaimResult,
  IdempotencyListing,
  IdempotencyListQuery,
  IdempotencyOwnership,
  IdempotencyRecord,
  IdempotencyStore,
  ReleasedKey,
} from "@countersign/idempotency";

export type Store = IdempotencyStore;

export const key = "payout-7.acc-1.acc-2";

export const longLeaseMs = 60_000;

/** A lease that a case waits for. No case needs an answer within it, so that a busy machine passes like an idle one. */
export const shortLeaseMs = 100;

export function claimBy(token: string, overrides: Partial<IdempotencyClaim> = {}): IdempotencyClaim {
  return { token, fingerprint: fingerprintOf(token), leaseMs: longLeaseMs, recovery: "rerun", ...overrides };
}

export function fingerprintOf(token: string): string {
  return `fingerprint of ${token.slice(0, 100)}`;
}

export function fenceOf(result: IdempotencyClaimResult, rule: string): number {
  if (result.status !== "acquired") {
    throw new assert.AssertionError({ message: `${rule}, got ${result.status}` });
  }
  assert.ok(Number.isSafeInteger(result.fence), "a fence must be an integer");
  return result.fence;
}

/** Takes an absent key for `token`. Returns the fence. */
export async function take(
  store: Store,
  token: string,
  { key: ofKey = key, ...overrides }: Partial<IdempotencyClaim> & { readonly key?: string } = {},
): Promise<number> {
  return fenceOf(await store.claim(ofKey, claimBy(token, overrides)), "an absent key must be acquired");
}

export function assertOk(answer: IdempotencyOwnership | "not-held" | "not-decided", rule: string): void {
  assert.equal(answer, "ok", rule);
}

/** The record, without the time that passes by itself. */
export type Known =
  | Omit<Extract<IdempotencyRecord, { state: "running" }>, "remainingMs">
  | Exclude<IdempotencyRecord, { state: "running" }>;

export async function recordOf(store: Store, ofKey: string = key): Promise<Known | undefined> {
  const record = await store.read(ofKey);
  return record === undefined ? undefined : knownOf(record);
}

/** The record as it can be compared: the members of the contract alone. */
export function knownOf(record: IdempotencyRecord): Known {
  const { state, token, fence, fingerprint, decision } = record;
  const known = { token, fence, fingerprint, ...(decision ? { decision: knownDecision(decision) } : {}) };
  return state === "held" ? { state, ...known, reason: record.reason } : { state, ...known };
}

function knownDecision(decision: ReleasedKey["decision"]): ReleasedKey["decision"] {
  const { outcome, fence, reason, reopened } = decision;
  const known = { outcome, fence, reason, ...knownEntry(decision) };
  return reopened ? { ...known, reopened: knownEntry(reopened) } : known;
}

type OperatorEntry = Pick<ReleasedKey["decision"], "at" | "by" | "note">;

function knownEntry({ at, by, note }: OperatorEntry): OperatorEntry {
  return { at, ...(by === undefined ? {} : { by }), ...(note === undefined ? {} : { note }) };
}

export async function keptOf(store: Store, ofKey: string): Promise<ReleasedKey["decision"]> {
  const decision = (await store.read(ofKey))?.decision ?? (await store.readReleased(ofKey))?.decision;
  return decision ? knownDecision(decision) : assert.fail(`the decision about ${ofKey} must be kept`);
}

// An engine that keeps other keys too may give many pages, some of them empty.
const listingMs = 20_000;

export async function eachPage(
  store: Store,
  { state, limit }: Pick<IdempotencyListQuery, "state" | "limit">,
  use: (entries: IdempotencyListing["entries"]) => Promise<void>,
): Promise<void> {
  const deadline = performance.now() + listingMs;
  const cursors = new Set<string>();
  let cursor: string | undefined;
  do {
    // oxlint-disable-next-line no-await-in-loop -- a page is found by the cursor of the one before
    const listing: IdempotencyListing | undefined = await store.list?.({ state, limit, cursor });
    // oxlint-disable-next-line no-await-in-loop -- what happens between two pages
    await use(listing?.entries ?? []);
    cursor = listing?.cursor;
    if (cursor === undefined) return;
    assert.ok(!cursors.has(cursor), "a cursor of list must lead to a further page, not back");
    cursors.add(cursor);
  } while (performance.now() < deadline);
  assert.fail(`the pages must come to an end within ${listingMs} ms`);
}
