import assert from "node:assert/strict";
import { callsOf } from "../calls.ts";
import { claimBy, fenceOf, key, take } from "../claims.ts";
import { afterRecovery, assertThrows, withStoppedEngine } from "../engine-faults.ts";
import type { IdempotencyCase } from "../contract.ts";
import { inTurn } from "../in-turn.ts";
import { recordsOfEach, stateKeys, takeOneOfEach } from "../states.ts";
import { fillOf, outcomeOf } from "../waiting.ts";

/** What a store does when it cannot do its work: it throws, and forgets nothing. */
export const engineCases: readonly IdempotencyCase[] = [
  {
    name: "every call after close throws",
    async check({ store }) {
      await takeOneOfEach(store);
      await store.close();
      await assertThrows(callsOf(store), "after close");
    },
  },
  {
    name: "a full store refuses a further key by a throw, and evicts nothing that is alive",
    needs: ["fill"],
    async check(harness) {
      const { store } = harness;
      await takeOneOfEach(store);
      const before = await recordsOfEach(store);
      await fillOf(harness);
      const { error } = await outcomeOf(() => store.claim("one more", claimBy("late")));
      assert.ok(error !== undefined, "a claim that finds no room must throw");
      assert.equal(await store.read("one more"), undefined, "a claim that threw must not have taken the key");
      assert.deepEqual(await recordsOfEach(store), before, "no key that is alive must be evicted");
      await inTurn(stateKeys.slice(0, 3), async (ofKey) => {
        const { value } = await outcomeOf(() => store.claim(ofKey, claimBy("late")));
        assert.notEqual(value?.status, "acquired", `the key that is ${ofKey} must not be given away`);
      });
    },
  },
  {
    name: "every call while the engine is stopped is rejected in time, and none is answered by a guess",
    needs: ["engine"],
    async check(harness) {
      const { store } = harness;
      await takeOneOfEach(store);
      await withStoppedEngine(harness, callsOf(store));
    },
  },
  {
    name: "after the engine is back the store works again by itself",
    needs: ["engine"],
    async check(harness) {
      const { store } = harness;
      await take(store, "before", { key: "claimed before" });
      await withStoppedEngine(harness, []);
      // The first attempts may fail, and may have been executed: they are one claim, with one token.
      const result = await afterRecovery(harness, () => store.claim(key, claimBy("a")));
      fenceOf(result, "an absent key must be acquired after the engine is back");
      const { status } = await store.claim(key, claimBy("b"));
      assert.equal(status, "in-flight", "the key must be in flight to others");
      assert.equal(await store.complete(key, "a"), "ok", "the owner must be able to complete");
    },
  },
  {
    name: "after the engine is back it has everything that was answered before",
    needs: ["engine", "durability"],
    async check(harness) {
      const { store } = harness;
      const releasedFence = await takeOneOfEach(store);
      const before = await recordsOfEach(store);
      await withStoppedEngine(harness, callsOf(store));
      assert.deepEqual(
        await afterRecovery(harness, () => recordsOfEach(store)),
        before,
        "no answer must be undone",
      );
      const fence = await take(store, "late", { key: "released" });
      assert.ok(fence > releasedFence, "the fence of a key that was released must still grow");
    },
  },
];
