import assert from "node:assert/strict";
import {
  assertOk,
  claimBy,
  decide,
  fingerprintOf,
  key,
  longLeaseMs,
  recordOf,
  shortLeaseMs,
  take,
  takeAndExpire,
  takeOver,
} from "../claims.ts";
import type { IdempotencyCase } from "../contract.ts";
import { inTurn } from "../in-turn.ts";
import { assertLost, heldReason, owner, recordsOfEach, stateKeys, takeOneOfEach } from "../states.ts";
import { pass } from "../waiting.ts";

/** How a run ends: complete, release, hold. */
export const settleCases: readonly IdempotencyCase[] = [
  {
    name: "complete makes the owner's run done, and is ok again when its reply was lost",
    async check({ store }) {
      const fence = await take(store, "a");
      await inTurn(["first", "repeated"], async (which) => {
        assertOk(await store.complete(key, "a"), `the ${which} completion by the owner must be ok`);
        assert.deepEqual(
          await recordOf(store),
          { state: "done", token: "a", fence, fingerprint: fingerprintOf("a") },
          "a completed key must read as done, by the owner and with its fingerprint",
        );
      });
    },
  },
  {
    name: "complete by the owner ends a held key, whoever held it",
    async check(harness) {
      const { store } = harness;
      await takeOneOfEach(store);
      assertOk(await store.complete("held", owner), "the owner must be able to complete what it held");
      await takeAndExpire(harness, "a");
      await store.claim(key, claimBy("b", { recovery: "hold" }));
      assertOk(await store.complete(key, "a"), "nobody else has run the key: its owner must complete it");
      assert.equal((await store.read("held"))?.state, "done", "a completed key must be done");
      assert.equal((await store.read(key))?.state, "done", "a completed key must be done");
    },
  },
  {
    name: "complete by a stranger is lost in every state",
    async check({ store }) {
      await takeOneOfEach(store);
      await assertLost(store, stateKeys, (ofKey) => store.complete(ofKey, "stranger"));
    },
  },
  {
    name: "complete is lost to the owner of a key that was released",
    async check({ store }) {
      await takeOneOfEach(store);
      await assertLost(store, ["released"], (ofKey) => store.complete(ofKey, owner));
    },
  },
  {
    name: "release makes the owner's run absent, once",
    async check({ store }) {
      await take(store, "a");
      assertOk(await store.release(key, "a"), "the owner must be able to release its run");
      assert.equal(await store.read(key), undefined, "a released key must be absent");
      assert.equal(await store.release(key, "a"), "lost", "what is absent cannot be released again");
      await take(store, "b");
    },
  },
  {
    name: "release by a stranger is lost in every state",
    async check({ store }) {
      await takeOneOfEach(store);
      await assertLost(store, stateKeys, (ofKey) => store.release(ofKey, "stranger"));
    },
  },
  {
    name: "release of a done or held key is lost to the owner itself",
    async check({ store }) {
      await takeOneOfEach(store);
      await assertLost(store, ["done", "held"], (ofKey) => store.release(ofKey, owner));
    },
  },
  {
    name: "hold keeps the owner's run from everybody, with the owner's reason, until it is resolved",
    async check(harness) {
      const { store } = harness;
      const fence = await take(store, "a", { leaseMs: shortLeaseMs });
      assertOk(await store.hold(key, "a", heldReason), "the owner must be able to hold its run");
      const expected = { token: "a", fence, fingerprint: fingerprintOf("a"), reason: heldReason };
      assert.deepEqual(await recordOf(store), { state: "held", ...expected }, "it must be read as held");
      await pass(harness, shortLeaseMs);
      const { status } = await store.claim(key, claimBy("b"));
      assert.equal(status, "held", "a held key must stay held when the lease of its run would have ended");
    },
  },
  {
    name: "hold by a stranger is lost in every state",
    async check({ store }) {
      await takeOneOfEach(store);
      await assertLost(store, stateKeys, (ofKey) => store.hold(ofKey, "stranger", "another reason"));
    },
  },
  {
    name: "hold of a key that is no run is lost to the owner itself",
    async check({ store }) {
      await takeOneOfEach(store);
      const settled = stateKeys.filter((ofKey) => ofKey !== "running");
      await assertLost(store, settled, (ofKey) => store.hold(ofKey, owner, "another reason"));
    },
  },
  {
    name: "an owner whose key was taken over has lost it, whatever it tries",
    async check(harness) {
      const { store } = harness;
      await takeAndExpire(harness, "a");
      await takeOver(store, "b");
      const before = await recordOf(store);
      assert.equal(await store.heartbeat(key, "a", longLeaseMs), "lost", "its heartbeat must be lost");
      assert.equal(await store.complete(key, "a"), "lost", "its completion must be lost");
      assert.equal(await store.release(key, "a"), "lost", "its release must be lost");
      assert.equal(await store.hold(key, "a", "late"), "lost", "its hold must be lost");
      assert.deepEqual(await recordOf(store), before, "what is lost must change nothing");
      assertOk(await store.complete(key, "b"), "the new owner must be able to complete");
      assert.equal(await store.complete(key, "a"), "lost", "what another has paid must stay lost");
    },
  },
  {
    name: "no step ends done",
    async check({ store }) {
      await takeOneOfEach(store);
      const before = await recordsOfEach(store);
      await store.heartbeat("done", owner, longLeaseMs);
      await store.release("done", owner);
      await store.hold("done", owner, "another reason");
      await decide(store, "done", "released");
      await store.claim("done", claimBy(owner, { recovery: "hold" }));
      await store.prune();
      assert.deepEqual(await recordsOfEach(store), before, "a done key must stay done");
    },
  },
];
