import assert from "node:assert/strict";
import { assertOk, claimBy, key, longLeaseMs, shortLeaseMs, take } from "../claims.ts";
import type { IdempotencyCase } from "../contract.ts";
import { withProcessClock } from "../process-clock.ts";
import { needed, pass } from "../waiting.ts";

const tenMinutesMs = 600_000;
const hourMs = 3_600_000;

export const clockCases: readonly IdempotencyCase[] = [
  {
    name: "leases are measured by the store's clock, whatever the process thinks of the time",
    async check(harness) {
      const { store } = harness;
      const fence = await take(store, "a");
      const ahead = await withProcessClock(tenMinutesMs, async () => {
        await take(store, "fast", { key: "claimed by a fast clock", leaseMs: shortLeaseMs });
        const record = await store.read(key);
        assert.ok(
          record?.state === "run" && record.remainingMs > 0,
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
  },
  {
    name: "retentions are measured by the store's clock, whatever the process thinks of the time",
    needs: ["retention"],
    async check(harness) {
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
  },
];
