import assert from "node:assert/strict";
import { type Store, fenceOf, claimBy, key, take, takeAndExpire, takeOver } from "../claims.ts";
import type { IdempotencyStoreHarness } from "../harness.ts";
import type { IdempotencyCase } from "../idempotency-contract.ts";
import { advance, retentionMsOf } from "../waiting.ts";

type Harness = IdempotencyStoreHarness<unknown>;

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
      await store.resolve(key, "released");
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
      assertGrown(first, await take(store, "b"));
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
