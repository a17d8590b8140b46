import assert from "node:assert/strict";
import { type Store, claimBy, fenceOf, key, take } from "../claims.ts";
import type { IdempotencyCase } from "../contract.ts";
import { inTurn, needed } from "../waiting.ts";
import { afterRecovery, withStoppedEngine } from "./engine-cases.ts";

const hourMs = 3_600_000;
const microsecondsIn2020 = Date.UTC(2020) * 1_000;

/** A fence is above every earlier fence of its key: what an old owner still sends can be told from the new owner's. */
export const fenceCases: readonly IdempotencyCase[] = [
  {
    name: "the fence grows when the clock was set back, over the pruning of a done key",
    needs: ["clock", "retention"],
    async check(harness) {
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

function assertGrown(before: number, after: number): void {
  assert.ok(after > before, `the fence must be above ${before}, got ${after}`);
}
