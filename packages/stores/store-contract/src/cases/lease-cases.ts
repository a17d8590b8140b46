import assert from "node:assert/strict";
import { leaseExpired } from "@countersign/idempotency";
import {
  assertOk,
  claimBy,
  decide,
  fenceOf,
  fingerprintOf,
  key,
  longLeaseMs,
  recordOf,
  remainingMsOf,
  shortLeaseMs,
  take,
  takeAndExpire,
  takeOver,
} from "../claims.ts";
import type { IdempotencyCase } from "../contract.ts";
import { inTurn } from "../in-turn.ts";
import { withProcessClock } from "../process-clock.ts";
import { advance, pass } from "../waiting.ts";

const tenMinutesMs = 600_000;

/** What the end of a lease means, and whose clock says so. */
export const leaseCases: readonly IdempotencyCase[] = [
  {
    name: "under recovery rerun an expired run becomes a run of the claim",
    async check(harness) {
      const { store } = harness;
      await takeAndExpire(harness, "a");
      const fence = await takeOver(store, "b");
      assert.deepEqual(
        await recordOf(store),
        { state: "run", token: "b", fence, fingerprint: fingerprintOf("b") },
        "the run must have the token, the fence and the fingerprint of its new owner",
      );
      const { status } = await store.claim(key, claimBy("c"));
      assert.equal(status, "in-flight", "the new owner must have a lease of its own");
    },
  },
  {
    name: "under recovery hold an expired run becomes held for its old owner, and stays held",
    async check(harness) {
      const { store } = harness;
      const fence = await takeAndExpire(harness, "a");
      const record = { token: "a", fence, fingerprint: fingerprintOf("a"), reason: leaseExpired };
      const expected = { status: "held", fingerprint: fingerprintOf("a"), reason: leaseExpired };
      const claims = [claimBy("b", { recovery: "hold" }), claimBy("c"), claimBy("a")];
      await inTurn(claims, async (claim) => {
        const rule = `an expired run must be held, for the reason ${leaseExpired}`;
        assert.deepEqual({ ...(await store.claim(key, claim)) }, expected, rule);
        assert.deepEqual(await recordOf(store), { state: "held", ...record }, "it must be read as held");
      });
    },
  },
  {
    name: "the owner's own claim after its lease has expired is acquired with the same fence",
    async check(harness) {
      const { store } = harness;
      await inTurn(["rerun", "hold"] as const, async (recovery) => {
        const fence = await take(store, "a", { key: recovery, leaseMs: shortLeaseMs });
        await pass(harness, shortLeaseMs);
        const again = await store.claim(recovery, claimBy("a", { recovery }));
        const rule = "an attempt must not hold its own key";
        assert.equal(fenceOf(again, rule), fence, "an attempt that nobody overtook must keep its fence");
        const { status } = await store.claim(recovery, claimBy("b", { recovery }));
        assert.equal(status, "in-flight", "the owner's claim must have begun a new lease");
      });
    },
  },
  {
    name: "a lease is live until its last millisecond and has expired at its end",
    needs: ["clock"],
    async check(harness) {
      const { store } = harness;
      await take(store, "a", { leaseMs: 1_000 });
      assert.equal(await remainingMsOf(store), 1_000, "the whole lease must remain at its beginning");
      await advance(harness, 999);
      assert.equal(await remainingMsOf(store), 1, "one millisecond must remain before the end");
      const before = await store.claim(key, claimBy("b"));
      assert.deepEqual(
        { ...before },
        { status: "in-flight", fingerprint: fingerprintOf("a"), remainingMs: 1 },
        "a lease must be live one millisecond before its end, and a claim must be told that this is left",
      );
      await advance(harness, 1);
      assert.equal(await remainingMsOf(store), 0, "nothing must remain at the end");
      await takeOver(store, "b");
    },
  },
  {
    name: "an owner whose lease has expired and whose key nobody took settles it as before",
    async check(harness) {
      const { store } = harness;
      const steps = ["complete", "release", "hold"] as const;
      await inTurn(steps, (step) => take(store, "a", { key: step, leaseMs: shortLeaseMs }));
      await pass(harness, shortLeaseMs);
      assertOk(await store.complete("complete", "a"), "a late owner must be able to complete");
      assertOk(await store.release("release", "a"), "a late owner must be able to release");
      assertOk(await store.hold("hold", "a", "late"), "a late owner must be able to hold");
      assert.equal((await store.read("complete"))?.state, "done", "what was completed must be done");
      assert.equal(await store.read("release"), undefined, "what was released must be absent");
      assert.equal((await store.read("hold"))?.state, "held", "what was held must be held");
    },
  },
  {
    name: "leases are measured by the store's clock, whatever the process thinks of the time",
    async check(harness) {
      const { store } = harness;
      await take(store, "a");
      const ahead = await withProcessClock(tenMinutesMs, async () => {
        await take(store, "fast", { key: "claimed by a fast clock", leaseMs: shortLeaseMs });
        assert.ok((await remainingMsOf(store)) > 0, "what remains must be told by the store's clock");
        assert.equal(
          await decide(store, key, "released"),
          "not-held",
          "an operator's process must not end a live run by its clock",
        );
        return store.claim(key, claimBy("b"));
      });
      assert.equal(ahead.status, "in-flight", "a live lease must not expire by the clock of a process");
      await withProcessClock(-tenMinutesMs, () => store.heartbeat(key, "a", longLeaseMs));
      const kept = await store.claim(key, claimBy("b"));
      assert.equal(kept.status, "in-flight", "a heartbeat must not be shortened by the clock of its owner");
      await pass(harness, shortLeaseMs);
      const { status } = await store.claim("claimed by a fast clock", claimBy("b"));
      assert.equal(status, "acquired", "a lease must not be lengthened by the clock of its owner");
      await withProcessClock(-tenMinutesMs, () => take(store, "slow", { key: "claimed by a slow clock" }));
      const behind = await store.claim("claimed by a slow clock", claimBy("b"));
      assert.equal(behind.status, "in-flight", "a lease must not be shortened by the clock of its owner");
    },
  },
];
