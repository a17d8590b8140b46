import assert from "node:assert/strict";
import {
  assertOk,
  claimBy,
  key,
  longLeaseMs,
  remainingMsOf,
  shortLeaseMs,
  take,
  takeAndExpire,
} from "../claims.ts";
import type { IdempotencyCase } from "../contract.ts";
import { assertLost, owner, stateKeys, takeOneOfEach } from "../states.ts";
import { pass } from "../waiting.ts";

/** How an owner keeps its key. */
export const heartbeatCases: readonly IdempotencyCase[] = [
  {
    name: "a heartbeat of the owner begins the lease anew",
    async check(harness) {
      const { store } = harness;
      await take(store, "a", { leaseMs: shortLeaseMs });
      assertOk(await store.heartbeat(key, "a", longLeaseMs), "the owner's heartbeat must be ok");
      await pass(harness, shortLeaseMs);
      const { status } = await store.claim(key, claimBy("b"));
      assert.equal(status, "in-flight", "the heartbeat must have begun a new lease");
      assertOk(await store.heartbeat(key, "a", shortLeaseMs), "the owner's heartbeat must be ok");
      const remainingMs = await remainingMsOf(store);
      assert.ok(
        remainingMs <= shortLeaseMs,
        `the lease must be the heartbeat's, also a shorter one: ${remainingMs}`,
      );
    },
  },
  {
    name: "a heartbeat of the owner revives an expired run that nobody took",
    async check(harness) {
      const { store } = harness;
      await takeAndExpire(harness, "a");
      assertOk(
        await store.heartbeat(key, "a", longLeaseMs),
        "the owner of an expired run must still have it",
      );
      const { status } = await store.claim(key, claimBy("b"));
      assert.equal(status, "in-flight", "the revived run must be in flight");
    },
  },
  {
    name: "a heartbeat of a stranger is lost in every state, and moves no lease",
    async check(harness) {
      const { store } = harness;
      await takeOneOfEach(store);
      await assertLost(store, stateKeys, (ofKey) => store.heartbeat(ofKey, "stranger", shortLeaseMs));
      const remainingMs = await remainingMsOf(store, "running");
      assert.ok(remainingMs > shortLeaseMs, "a stranger's heartbeat must not shorten the lease");
      await takeAndExpire(harness, "a");
      await store.heartbeat(key, "stranger", longLeaseMs);
      assert.ok((await remainingMsOf(store)) <= 0, "a stranger's heartbeat must not revive a run");
    },
  },
  {
    name: "a heartbeat is lost to the owner itself once the key is no run any more",
    async check({ store }) {
      await takeOneOfEach(store);
      const settled = stateKeys.filter((ofKey) => ofKey !== "running");
      await assertLost(store, settled, (ofKey) => store.heartbeat(ofKey, owner, longLeaseMs));
    },
  },
];
