import assert from "node:assert/strict";
import { assertOk, claimBy, decide, key, shortLeaseMs, take } from "../claims.ts";
import type { IdempotencyCase } from "../contract.ts";
import { inTurn } from "../in-turn.ts";
import { withProcessClock } from "../process-clock.ts";
import { heldReason, owner, recordsOfEach, takeOneOfEach } from "../states.ts";
import { advance, retentionMsOf } from "../waiting.ts";

const hourMs = 3_600_000;

/** For how long a done key is remembered, and what pruning removes. */
export const retentionCases: readonly IdempotencyCase[] = [
  {
    name: "a done key is remembered to the last millisecond of its retention, which begins when it is done",
    needs: ["clock", "retention"],
    async check(harness) {
      const { store } = harness;
      await take(store, "a", { leaseMs: 2 * hourMs });
      await advance(harness, hourMs);
      await store.complete(key, "a");
      await advance(harness, retentionMsOf(harness) - 1);
      await inTurn(["before", "after"], async (when) => {
        const { status } = await store.claim(key, claimBy("b"));
        assert.equal(status, "done", `a key must be done within its retention, ${when} pruning`);
        await store.prune();
      });
      assert.equal((await store.read(key))?.state, "done", "it must read as done");
      assertOk(await store.complete(key, "a"), "its owner must learn that it is done");
    },
  },
  {
    name: "a key that an operator resolved as done is remembered as long as any other",
    needs: ["clock", "retention"],
    async check(harness) {
      const { store } = harness;
      const undecided = ["held", "expired"];
      await inTurn(undecided, (ofKey) => take(store, "a", { key: ofKey, leaseMs: shortLeaseMs }));
      await store.hold("held", "a", heldReason);
      await advance(harness, hourMs);
      await inTurn(undecided, async (ofKey) => {
        assertOk(await decide(store, ofKey, "done"), "there must be something to decide");
      });
      await advance(harness, retentionMsOf(harness) - 1);
      await store.prune();
      await inTurn(undecided, async (ofKey) => {
        const { status } = await store.claim(ofKey, claimBy("b"));
        assert.equal(status, "done", "the retention must begin when the key is resolved");
      });
    },
  },
  {
    name: "a done key is absent after its retention, pruned or not",
    needs: ["clock", "retention"],
    async check(harness) {
      const { store } = harness;
      await inTurn(["never pruned", "pruned"], async (ofKey) => {
        await take(store, "a", { key: ofKey });
        await store.complete(ofKey, "a");
        await advance(harness, hourMs);
        // Once more, after a lost reply: it must not begin the retention anew.
        await store.complete(ofKey, "a");
        await advance(harness, retentionMsOf(harness) - hourMs + 1);
        if (ofKey === "pruned") await store.prune();
        assert.equal(await store.read(ofKey), undefined, "it must be absent after its retention");
        assert.equal(await store.complete(ofKey, "a"), "lost", "its owner must have lost what is forgotten");
        assert.equal(await decide(store, ofKey, "done"), "not-held", "there must be nothing to decide");
        await take(store, "b", { key: ofKey });
      });
    },
  },
  {
    name: "retentions are measured by the store's clock, whatever the process thinks of the time",
    needs: ["retention"],
    async check(harness) {
      const { store } = harness;
      const beyondMs = retentionMsOf(harness) + hourMs;
      await take(store, owner);
      await withProcessClock(-beyondMs, async () => {
        assertOk(await store.complete(key, owner), "the owner must be able to complete its run");
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
  },
  {
    name: "pruning removes neither runs nor held keys, however old",
    needs: ["clock", "retention"],
    async check(harness) {
      const { store } = harness;
      await takeOneOfEach(store);
      const { running, held } = await recordsOfEach(store);
      await advance(harness, 3 * retentionMsOf(harness));
      await store.prune();
      const after = await recordsOfEach(store);
      assert.deepEqual(after["running"], running, "a run must never be pruned");
      assert.deepEqual(after["held"], held, "a held key must never be pruned");
    },
  },
  {
    name: "pruning counts the done keys that it removes, and nothing else",
    needs: ["clock", "retention"],
    async check(harness) {
      const { store } = harness;
      await takeOneOfEach(store);
      await inTurn(["done, too", "done as well"], async (ofKey) => {
        await take(store, owner, { key: ofKey });
        await store.complete(ofKey, owner);
      });
      assert.equal(await store.prune(), 0, "nothing must be removed within the retention");
      await advance(harness, retentionMsOf(harness) + 1);
      const removed = await store.prune();
      // Where the engine removes by itself what has ended, nothing is left to be counted.
      assert.ok(removed === 0 || removed === 3, `three done keys have ended, ${removed} were counted`);
      assert.equal(await store.prune(), 0, "nothing must be removed twice");
    },
  },
];
