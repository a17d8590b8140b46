import assert from "node:assert/strict";
import { inTurn } from "../in-turn.ts";
import type { NonceCase } from "../contract.ts";
import { withProcessClock } from "../process-clock.ts";
import { shortRetainMs, useBy } from "../uses.ts";
import { advance, pass, pruneOf } from "../waiting.ts";

const tenMinutesMs = 600_000;

/** For how long a nonce is remembered. */
export const nonceRetentionCases: readonly NonceCase[] = [
  {
    name: "a nonce is seen in the last second and in the last millisecond of its retention, pruned or not",
    needs: ["clock"],
    async check(harness) {
      const { store } = harness;
      await store.claim(useBy("a", { retainMs: 120_000 }));
      await inTurn([119_001, 998, 1], async (ms) => {
        await advance(harness, ms);
        const rule = "a nonce must be remembered for all of its retention, its last millisecond included";
        assert.equal(await store.claim(useBy("b")), "seen", rule);
        await store.prune?.();
        assert.equal(await store.claim(useBy("b")), "seen", rule);
      });
    },
  },
  {
    name: "a nonce is fresh again one millisecond after its retention, and the first to use it has it",
    needs: ["clock"],
    async check(harness) {
      const { store } = harness;
      await store.claim(useBy("a", { retainMs: 1_000 }));
      await advance(harness, 1_001);
      assert.equal(await store.claim(useBy("b")), "fresh", "a nonce must not outlive its retention");
      assert.equal(await store.claim(useBy("a")), "seen", "it must be its new user's");
    },
  },
  {
    name: "a nonce whose retention has ended is fresh to one of many concurrent claims",
    async check(harness) {
      const { store } = harness;
      await store.claim(useBy("a", { retainMs: shortRetainMs }));
      await pass(harness, shortRetainMs);
      const claims = Array.from({ length: 20 }, async (_, index) => store.claim(useBy(`late-${index}`)));
      const fresh = (await Promise.all(claims)).filter((answer) => answer === "fresh").length;
      assert.equal(fresh, 1, `exactly one claim must be fresh, got ${fresh}`);
    },
  },
  {
    name: "a repeated claim never shortens the retention",
    async check(harness) {
      const { store } = harness;
      await store.claim(useBy("a"));
      await store.claim(useBy("a", { retainMs: shortRetainMs }));
      await pass(harness, shortRetainMs);
      assert.equal(await store.claim(useBy("b")), "seen", "the longer of the two retentions must hold");
    },
  },
  {
    name: "a replay does not move the end of the retention",
    needs: ["clock"],
    async check(harness) {
      const { store } = harness;
      await store.claim(useBy("a", { retainMs: 1_000 }));
      await store.claim(useBy("b", { retainMs: 10 }));
      await advance(harness, 1_000);
      assert.equal(
        await store.claim(useBy("b", { retainMs: 1_000_000 })),
        "seen",
        "it must not be shortened",
      );
      await advance(harness, 1);
      assert.equal(await store.claim(useBy("c")), "fresh", "it must not be lengthened");
    },
  },
  {
    name: "pruning removes the nonces whose retention has ended, and no others",
    needs: ["prune"],
    async check(harness) {
      const { store } = harness;
      await store.claim(useBy("a", { nonce: "short", retainMs: shortRetainMs }));
      await store.claim(useBy("a"));
      await pass(harness, shortRetainMs);
      const removed = await pruneOf(store);
      // Where the engine removes by itself what has ended, nothing is left to be counted.
      assert.ok(removed === 0 || removed === 1, `one nonce has ended, ${removed} were counted`);
      assert.equal(await pruneOf(store), 0, "nothing must be removed twice");
      assert.equal(await store.claim(useBy("b")), "seen", "a live nonce must stay");
      assert.equal(await store.claim(useBy("b", { nonce: "short" })), "fresh", "the other must have ended");
    },
  },
  {
    name: "retentions are measured by the store's clock, whatever the process thinks of the time",
    async check(harness) {
      const { store } = harness;
      await store.claim(useBy("a"));
      const ahead = await withProcessClock(tenMinutesMs, async () => {
        await store.claim(useBy("a", { nonce: "fast", retainMs: shortRetainMs }));
        return store.claim(useBy("b"));
      });
      assert.equal(ahead, "seen", "a live nonce must not end by the clock of a process");
      await pass(harness, shortRetainMs);
      const fast = await store.claim(useBy("b", { nonce: "fast" }));
      assert.equal(fast, "fresh", "a retention must not be lengthened by the clock of a process");
      await withProcessClock(-tenMinutesMs, () => store.claim(useBy("a", { nonce: "slow" })));
      const slow = await store.claim(useBy("b", { nonce: "slow" }));
      assert.equal(slow, "seen", "a retention must not be shortened by the clock of a process");
    },
  },
];
