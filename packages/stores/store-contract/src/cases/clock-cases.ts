import assert from "node:assert/strict";
import { leaseExpired } from "@countersign/idempotency";
import {
  assertOk,
  claimBy,
  fenceOf,
  fingerprintOf,
  key,
  longLeaseMs,
  remainingMsOf,
  shortLeaseMs,
  take,
  takeAndExpire,
} from "../claims.ts";
import type { IdempotencyCase } from "../contract.ts";
import { inTurn } from "../in-turn.ts";
import { advance, pass } from "../waiting.ts";

const hourMs = 3_600_000;
const recoveries = ["rerun", "hold"] as const;

/** What a claim leaves to the present owner: never more than one lease, whatever became of the engine's clock. */
export const clockCases: readonly IdempotencyCase[] = [
  {
    name: "a claim leaves the owner no more of its lease than the claim's own, and that really ends",
    async check(harness) {
      const { store } = harness;
      await inTurn(recoveries, async (recovery) => {
        await take(store, "a", { key: recovery });
        const claim = claimBy("b", { recovery, leaseMs: shortLeaseMs });
        const result = await store.claim(recovery, claim);
        if (result.status !== "in-flight") assert.fail(`a live run must be in flight, got ${result.status}`);
        assert.equal(result.fingerprint, fingerprintOf("a"), "in flight must give the owner's fingerprint");
        assert.ok(
          result.remainingMs <= shortLeaseMs,
          `a claim must be told of one lease at most, got ${result.remainingMs}`,
        );
        assert.ok(
          (await remainingMsOf(store, recovery)) <= shortLeaseMs,
          "the lease must end as it was told",
        );
      });
      await pass(harness, shortLeaseMs);
      const { status } = await store.claim("rerun", claimBy("b"));
      assert.equal(status, "acquired", "the run must have expired when it was told");
      const held = await store.claim("hold", claimBy("b", { recovery: "hold" }));
      const expected = { status: "held", fingerprint: fingerprintOf("a"), reason: leaseExpired };
      assert.deepEqual({ ...held }, expected, "the run must have expired when it was told");
    },
  },
  {
    name: "an owner whose lease was cut begins it anew by a heartbeat",
    async check(harness) {
      const { store } = harness;
      await take(store, "a");
      await store.claim(key, claimBy("b", { leaseMs: shortLeaseMs }));
      assertOk(await store.heartbeat(key, "a", longLeaseMs), "the owner's heartbeat must be ok");
      await pass(harness, shortLeaseMs);
      const { status } = await store.claim(key, claimBy("b"));
      assert.equal(status, "in-flight", "the heartbeat must have begun a new lease");
    },
  },
  {
    name: "a claim leaves a lease alone that ends within the claim's own",
    needs: ["clock"],
    async check(harness) {
      const { store } = harness;
      await take(store, "a", { leaseMs: 1_000 });
      await advance(harness, 400);
      await inTurn([600, 1_000, longLeaseMs], async (leaseMs) => {
        const claimed = await store.claim(key, claimBy("b", { leaseMs }));
        const expected = { status: "in-flight", fingerprint: fingerprintOf("a"), remainingMs: 600 };
        assert.deepEqual({ ...claimed }, expected, "a claim must be told what is left");
        assert.equal(await remainingMsOf(store), 600, "a claim must not move a lease");
      });
    },
  },
  {
    name: "a dead owner has its key for one lease at most when the clock was set back by an hour",
    needs: ["clock"],
    async check(harness) {
      const { store } = harness;
      const fences = new Map<string, number>();
      await inTurn(recoveries, async (recovery) => {
        fences.set(recovery, await take(store, "a", { key: recovery }));
      });
      await advance(harness, -hourMs);
      await inTurn(recoveries, async (recovery) => {
        const claimed = await store.claim(recovery, claimBy("b", { recovery }));
        const expected = { status: "in-flight", fingerprint: fingerprintOf("a"), remainingMs: longLeaseMs };
        assert.deepEqual({ ...claimed }, expected, "a claim must be told of one lease");
      });
      await advance(harness, longLeaseMs);
      const taken = await store.claim("rerun", claimBy("b"));
      const fence = fenceOf(taken, "under rerun the run must have expired after one lease");
      assert.ok(fence > (fences.get("rerun") ?? 0), "the fence must grow although the clock was set back");
      const { status } = await store.claim("hold", claimBy("b", { recovery: "hold" }));
      assert.equal(status, "held", "under hold the run must have expired after one lease");
    },
  },
  {
    name: "an expired run that lives again when the clock was set back lives for one lease at most",
    needs: ["clock"],
    async check(harness) {
      const { store } = harness;
      await takeAndExpire(harness, "a");
      await advance(harness, -hourMs);
      await store.claim(key, claimBy("b", { leaseMs: 1_000 }));
      await advance(harness, 1_000);
      const { status } = await store.claim(key, claimBy("b"));
      assert.equal(status, "acquired", "the run must have expired after one lease");
    },
  },
];
