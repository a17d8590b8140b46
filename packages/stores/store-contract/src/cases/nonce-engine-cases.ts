import assert from "node:assert/strict";
import { nonceCallsOf } from "../calls.ts";
import { afterRecovery, assertThrows, withStoppedEngine } from "../engine-faults.ts";
import type { NonceCase } from "../contract.ts";
import { useBy } from "../uses.ts";
import { fillOf, outcomeOf } from "../waiting.ts";

/** What a store does when it cannot remember: it throws, and forgets nothing. */
export const nonceEngineCases: readonly NonceCase[] = [
  {
    name: "every call of a nonce store after close throws",
    needs: ["close"],
    async check({ store }) {
      await store.claim(useBy("a"));
      await store.close?.();
      await assertThrows(nonceCallsOf(store), "after close");
    },
  },
  {
    name: "a full store refuses a further nonce by a throw, and evicts none that is alive",
    needs: ["fill"],
    async check(harness) {
      const { store } = harness;
      await store.claim(useBy("a"));
      await fillOf(harness);
      const { error } = await outcomeOf(() => store.claim(useBy("a", { nonce: "one more" })));
      assert.ok(error !== undefined, "a claim that finds no room must throw");
      const { value } = await outcomeOf(() => store.claim(useBy("b")));
      assert.notEqual(value, "fresh", "a nonce that is alive must not be evicted");
    },
  },
  {
    name: "every claim of a nonce while the engine is stopped is rejected in time",
    needs: ["engine"],
    async check(harness) {
      await harness.store.claim(useBy("a"));
      await withStoppedEngine(harness, nonceCallsOf(harness.store));
    },
  },
  {
    name: "after the engine is back the nonce store works again by itself",
    needs: ["engine"],
    async check(harness) {
      const { store } = harness;
      await store.claim(useBy("a", { nonce: "claimed before" }));
      await withStoppedEngine(harness, []);
      assert.equal(
        await afterRecovery(harness, () => store.claim(useBy("a"))),
        "fresh",
        "a new nonce must be fresh",
      );
      assert.equal(await store.claim(useBy("b")), "seen", "a nonce that was used must be seen");
    },
  },
  {
    name: "after the engine is back it has every nonce that was used before",
    needs: ["engine", "durability"],
    async check(harness) {
      const { store } = harness;
      await store.claim(useBy("a"));
      await withStoppedEngine(harness, []);
      const answer = await afterRecovery(harness, () => store.claim(useBy("b")));
      assert.equal(answer, "seen", "a restart must not let a replay through");
    },
  },
];
