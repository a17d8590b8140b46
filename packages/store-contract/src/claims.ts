import assert from "node:assert/strict";
import type {
  IdempotencyClaim,
  IdempotencyClaimResult,
  IdempotencyRecord,
  IdempotencyStore,
} from "@countersign/idempotency-guard";
import type { IdempotencyStoreHarness } from "./harness.ts";
import { pass } from "./waiting.ts";

/** The key of cases that need only one. */
export const key = "payout-7.acc-1.acc-2";

/** A lease that no case outlives. */
export const longLeaseMs = 60_000;

/** A lease that a case waits for. Long enough that a busy machine answers a few calls within it. */
export const shortLeaseMs = 200;

/** A claim of an owner with a fingerprint of its own. */
export function claimBy(token: string, overrides: Partial<IdempotencyClaim> = {}): IdempotencyClaim {
  return { token, fingerprint: fingerprintOf(token), leaseMs: longLeaseMs, recovery: "rerun", ...overrides };
}

export function fingerprintOf(token: string): string {
  return `fingerprint of ${token}`;
}

/** The fence of a claim that must have been acquired. */
export function fenceOf(result: IdempotencyClaimResult, rule: string): number {
  assert.equal(result.status, "acquired", rule);
  if (result.status !== "acquired") throw new Error(rule);
  assert.ok(Number.isSafeInteger(result.fence) && result.fence > 0, "a fence must be an integer above 0");
  return result.fence;
}

/** Takes the key for `token`. Returns the fence. */
export async function take(
  store: IdempotencyStore<unknown>,
  token: string,
  overrides: Partial<IdempotencyClaim> = {},
): Promise<number> {
  return fenceOf(await store.claim(key, claimBy(token, overrides)), "an absent key must be acquired");
}

/** Takes the key for `token` and lets its lease expire. Returns the fence. */
export async function takeAndExpire(
  harness: IdempotencyStoreHarness<unknown>,
  token: string,
): Promise<number> {
  const fence = await take(harness.store, token, { leaseMs: shortLeaseMs });
  await pass(harness, shortLeaseMs);
  return fence;
}

/** The record without what passes by itself. */
export async function recordOf(
  store: IdempotencyStore<unknown>,
  ofKey: string = key,
): Promise<
  Omit<Extract<IdempotencyRecord, { state: "run" }>, "remainingMs"> | IdempotencyRecord | undefined
> {
  const record = await store.read(ofKey);
  if (record?.state !== "run") return record;
  const { state, token, fence, fingerprint } = record;
  return { state, token, fence, fingerprint };
}
