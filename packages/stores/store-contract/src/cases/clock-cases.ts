import assert from "node:assert/strict";
import { type Store, assertOk, claimBy, fenceOf, key, longLeaseMs, shortLeaseMs, take } from "../claims.ts";
import { type IdempotencyCase, idempotencyRules } from "../contract.ts";
import { withProcessClock } from "../process-clock.ts";
import { inTurn, needed, pass } from "../waiting.ts";
import { afterRecovery, withStoppedEngine } from "./engine-cases.ts";

const tenMinutesMs = 600_000;

const hourMs = 3_600_000;

export const clockCases: readonly IdempotencyCase[] = [
  ...idempotencyRules([], {
    async "leases are measured by the store's clock, whatever the process thinks of the time"(harness) {
      const { store } = harness;
      const fence = await take(store, "a");
      const ahead = await withProcessClock(tenMinutesMs, async () => {
        await take(store, "fast", { key: "claimed by a fast clock", leaseMs: shortLeaseMs });
        const record = await store.read(key);
        assert.ok(
          record?.state === "running" && record.remainingMs > 0,
          "what remains is told by the store's clock",
        );
        const decided = await store.resolve(key, "released", { fence });
        assert.equal(decided, "not-held", "an operator's process must not end a live run by its clock");
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
  }),
  ...idempotencyRules(["retention"], {
    async "retentions are measured by the store's clock, whatever the process thinks of the time"(harness) {
      const { store } = harness;
      const beyondMs = needed(store.retentionMs) + hourMs;
      await take(store, "a");
      await withProcessClock(-beyondMs, async () => {
        assertOk(await store.complete(key, "a"), "the owner must be able to complete its run");
      });
      const { status } = await store.claim(key, claimBy("b"));
      assert.equal(status, "done", "a retention must not be shortened by the clock of the owner");
      await withProcessClock(beyondMs, async () => {
        assert.equal((await store.read(key))?.state, "done", "a key must not be forgotten by a fast clock");
        assert.equal(await store.prune(), 0, "a key must not be pruned by a fast clock");
        const { status: late } = await store.claim(key, claimBy("b"));
        assert.equal(late, "done", "a key must not be given away by a fast clock");
      });
      assert.equal((await store.read(key))?.state, "done", "a fast clock must have removed nothing");
    },
  }),
];

const microsecondsIn2020 = Date.UTC(2020) * 1_000;

/** A fence is above every earlier fence of its key: what an old owner still sends can be told from the new owner's. */
export const fenceCases: readonly IdempotencyCase[] = [
  ...idempotencyRules(["clock", "retention"], {
    async "the fence grows when the clock was set back, over the pruning of a done key"(harness) {
      const { store } = harness;
      const retentionMs = needed(store.retentionMs);
      const first = await raisedFence(store);
      await store.complete(key, "a");
      await harness.advance?.(retentionMs + 1);
      await store.prune();
      await harness.advance?.(-retentionMs - hourMs);
      const result = await store.claim(key, claimBy("b"));
      // Where pruning removes nothing, the key is done once more.
      if (result.status === "done") return;
      assertGrown(first, fenceOf(result, "a pruned key must be acquired"));
    },
  }),
  ...idempotencyRules(["engine"], {
    async "the fence grows over a restart of the engine, whatever that has lost"(harness) {
      const { store } = harness;
      const first = await raisedFence(store);
      await store.release(key, "a");
      await withStoppedEngine(harness, []);
      const result = await afterRecovery(harness, () => store.claim(key, claimBy("b")));
      assertGrown(first, fenceOf(result, "a released or forgotten key must be acquired"));
    },
  }),
  ...idempotencyRules([], {
    async "a fence is as high as the time in microseconds, above those of which the engine has lost every trace"({
      store,
    }) {
      await inTurn(["the first key", "the second key"], async (ofKey) => {
        const fence = await take(store, "a", { key: ofKey });
        assert.ok(
          fence >= microsecondsIn2020,
          `a fence must be a time in microseconds since 1970, or more, got ${fence}`,
        );
      });
    },
  }),
];

/** The key as a run of `a`, with a fence that is not the first one of a new key. */
async function raisedFence(store: Store): Promise<number> {
  await take(store, "a");
  await store.release(key, "a");
  await take(store, "a");
  await store.release(key, "a");
  return fenceOf(await store.claim(key, claimBy("a")), "a released key must be acquired");
}

function assertGrown(before: number, after: number): void {
  assert.ok(after > before, `the fence must be above ${before}, got ${after}`);
}
