import assert from "node:assert/strict";
import { type Store, claimBy, decide, fenceOf, key, take, takeAndExpire, takeOver } from "../claims.ts";
import { afterRecovery, withStoppedEngine } from "../engine-faults.ts";
import type { IdempotencyStoreHarness } from "../harness.ts";
import type { IdempotencyCase } from "../contract.ts";
import { inTurn } from "../in-turn.ts";
import { advance, retentionMsOf } from "../waiting.ts";

type Harness = IdempotencyStoreHarness<unknown>;

const hourMs = 3_600_000;
const microsecondsIn2020 = Date.UTC(2020) * 1_000;

/** A fence is above every earlier fence of its key: what an old owner still sends can be told from the new owner's. */
export const fenceCases: readonly IdempotencyCase[] = [
  {
    name: "the fence grows when an expired run is taken over",
    async check(harness) {
      const first = await takeAndExpire(harness, "a");
      assertGrown(first, await takeOver(harness.store, "b"));
    },
  },
  {
    name: "the fence grows over a release, also for the same token",
    async check({ store }) {
      const first = await take(store, "a");
      await store.release(key, "a");
      const second = await take(store, "b");
      assertGrown(first, second);
      await store.release(key, "b");
      assertGrown(second, await take(store, "b"));
    },
  },
  {
    name: "the fence grows over a key that an operator released",
    async check({ store }) {
      const first = await take(store, "a");
      await store.hold(key, "a", "in doubt");
      await decide(store, key, "released");
      assertGrown(first, await take(store, "b"));
    },
  },
  {
    name: "the fence grows over the end of the retention of a done key",
    needs: ["clock", "retention"],
    async check(harness) {
      const { store } = harness;
      const first = await raisedFence(store);
      await store.complete(key, "a");
      await endRetention(harness);
      const second = await take(store, "b");
      assertGrown(first, second);
      await store.hold(key, "b", "in doubt");
      await decide(store, key, "done");
      await endRetention(harness);
      assertGrown(second, await take(store, "c"));
    },
  },
  {
    name: "the fence grows over the pruning of a done key",
    needs: ["clock", "retention"],
    async check(harness) {
      const { store } = harness;
      const first = await raisedFence(store);
      await store.complete(key, "a");
      await endRetention(harness);
      await store.prune();
      assertGrown(first, await take(store, "b"));
    },
  },
  {
    name: "the fence grows over a release that was long ago, and pruning",
    needs: ["clock", "retention"],
    async check(harness) {
      const { store } = harness;
      const first = await raisedFence(store);
      await store.release(key, "a");
      await endRetention(harness);
      await store.prune();
      assertGrown(first, await take(store, "b"));
    },
  },
  {
    name: "the fence grows when the clock was set back, over a release, a takeover and a decision",
    needs: ["clock"],
    async check(harness) {
      const { store } = harness;
      const first = await take(store, "a");
      await store.release(key, "a");
      await advance(harness, -hourMs);
      const second = await takeAndExpire(harness, "b");
      assertGrown(first, second);
      // What remains of the lease is more than one: it is cut, and ends.
      await advance(harness, -hourMs);
      await store.claim(key, claimBy("c", { leaseMs: 1_000 }));
      await advance(harness, 1_000);
      const third = await takeOver(store, "c");
      assertGrown(second, third);
      await store.hold(key, "c", "in doubt");
      await decide(store, key, "released");
      await advance(harness, -hourMs);
      assertGrown(third, await take(store, "d"));
    },
  },
  {
    name: "the fence grows when the clock was set back, over the pruning of a done key",
    needs: ["clock", "retention"],
    async check(harness) {
      const { store } = harness;
      const first = await raisedFence(store);
      await store.complete(key, "a");
      await endRetention(harness);
      await store.prune();
      await advance(harness, -retentionMsOf(harness) - hourMs);
      const result = await store.claim(key, claimBy("b"));
      // Where pruning removes nothing, the key is done once more.
      if (result.status === "done") return;
      assertGrown(first, fenceOf(result, "a pruned key must be acquired"));
    },
  },
  {
    name: "the fence grows over a restart of the engine, whatever that has lost",
    needs: ["engine"],
    async check(harness) {
      const { store } = harness;
      const first = await raisedFence(store);
      await store.release(key, "a");
      await withStoppedEngine(harness, []);
      const result = await afterRecovery(harness, () => store.claim(key, claimBy("b")));
      assertGrown(first, fenceOf(result, "a released or forgotten key must be acquired"));
    },
  },
  {
    name: "a fence is as high as the time in microseconds, above those of which the engine has lost every trace",
    async check({ store }) {
      await inTurn(["the first key", "the second key"], async (ofKey) => {
        const fence = await take(store, "a", { key: ofKey });
        assert.ok(
          fence >= microsecondsIn2020,
          `a fence must be a time in microseconds since 1970, or more, got ${fence}`,
        );
      });
    },
  },
];

/** The key as a run of `a`, with a fence that is not the first one of a new key. */
async function raisedFence(store: Store): Promise<number> {
  await take(store, "a");
  await store.release(key, "a");
  await take(store, "a");
  await store.release(key, "a");
  return fenceOf(await store.claim(key, claimBy("a")), "a released key must be acquired");
}

async function endRetention(harness: Harness): Promise<void> {
  await advance(harness, retentionMsOf(harness) + 1);
}

function assertGrown(before: number, after: number): void {
  assert.ok(after > before, `the fence must be above ${before}, got ${after}`);
}
