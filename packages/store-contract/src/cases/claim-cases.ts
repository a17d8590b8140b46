import assert from "node:assert/strict";
import {
  claimBy,
  fenceOf,
  fingerprintOf,
  key,
  longLeaseMs,
  recordOf,
  shortLeaseMs,
  take,
} from "../claims.ts";
import type { IdempotencyCase } from "../idempotency-contract.ts";
import { pass } from "../waiting.ts";

/** Taking a key, and being told who has it. */
export const claimCases: readonly IdempotencyCase[] = [
  {
    name: "an absent key is given to its first claim, and reads as a run of its token",
    needs: [],
    async check({ store }) {
      assert.equal(await store.read(key), undefined, "a key that nobody claimed must read as absent");
      const fence = await take(store, "a");
      const record = await store.read(key);
      assert.equal(record?.state, "run", "a claimed key must read as a run");
      assert.deepEqual(
        await recordOf(store),
        { state: "run", token: "a", fence, fingerprint: fingerprintOf("a") },
        "a run must be read with the token, the fence and the fingerprint of its claim",
      );
      assertRemaining(record?.state === "run" ? record.remainingMs : Number.NaN);
    },
  },
  {
    name: "a key in flight is refused to others, with its owner's fingerprint and what is left of the lease",
    needs: [],
    async check({ store }) {
      const fence = await take(store, "a");
      for (const recovery of ["rerun", "hold"] as const) {
        const { status, ...rest } = await store.claim(key, claimBy("b", { recovery }));
        assert.equal(status, "in-flight", "a run whose lease is live must be in flight to other tokens");
        const { fingerprint, remainingMs } = { fingerprint: "", remainingMs: Number.NaN, ...rest };
        assert.equal(fingerprint, fingerprintOf("a"), "in flight must give the owner's fingerprint");
        assertRemaining(remainingMs);
      }
      assert.deepEqual(
        await recordOf(store),
        { state: "run", token: "a", fence, fingerprint: fingerprintOf("a") },
        "a claim that was refused must change nothing",
      );
    },
  },
  {
    name: "a claim repeated with its token, after a lost reply, is acquired again with the same fence",
    needs: [],
    async check({ store }) {
      const fence = await take(store, "a");
      for (const recovery of ["rerun", "hold"] as const) {
        const again = await store.claim(key, claimBy("a", { recovery }));
        const rule = "the owner's own claim must never see itself as somebody else's";
        assert.equal(fenceOf(again, rule), fence, "the owner's own claim must keep its fence");
      }
    },
  },
  {
    name: "a claim repeated with its token begins the lease anew",
    needs: [],
    async check(harness) {
      const { store } = harness;
      await take(store, "a", { leaseMs: shortLeaseMs });
      await store.claim(key, claimBy("a"));
      await pass(harness, shortLeaseMs);
      const { status } = await store.claim(key, claimBy("b"));
      assert.equal(status, "in-flight", "the repeated claim must have begun a new lease");
    },
  },
];

function assertRemaining(remainingMs: number): void {
  assert.ok(
    remainingMs > 0 && remainingMs <= longLeaseMs,
    `what remains of the lease must be above 0 and at most the lease, got ${remainingMs}`,
  );
}
