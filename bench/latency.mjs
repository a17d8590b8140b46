// How long single claims take, as sorted milliseconds.
import { randomUUID } from "node:crypto";

const fingerprint = "x".repeat(43);

export function freshKey() {
  return `payout:payout-${randomUUID()}.funding-1.business-1`;
}

/** One claim of a key that nobody has had. Resolves to its milliseconds. */
export async function timeClaim(store) {
  const key = freshKey();
  const claim = { token: randomUUID(), fingerprint, leaseMs: 30_000, recovery: "rerun" };
  const startedAt = performance.now();
  const { status } = await store.claim(key, claim);
  const tookMs = performance.now() - startedAt;
  if (status !== "acquired") throw new Error(`a fresh key was ${status}`);
  return tookMs;
}

export function percentile(values, share) {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))];
}
