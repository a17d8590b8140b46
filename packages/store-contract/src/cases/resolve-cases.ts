import assert from "node:assert/strict";
import { assertOk, claimBy, fingerprintOf, key, recordOf, take, takeAndExpire } from "../claims.ts";
import type { IdempotencyCase } from "../idempotency-contract.ts";
import { inTurn } from "../in-turn.ts";
import { owner, recordsOfEach, takeOneOfEach } from "../states.ts";

const outcomes = ["done", "released"] as const;

/** An operator's decision. */
export const resolveCases: readonly IdempotencyCase[] = [
  {
    name: "resolve has nothing to decide on a live run, a done key and an absent one",
    async check({ store }) {
      await takeOneOfEach(store);
      const before = await recordsOfEach(store);
      await inTurn(["running", "done", "released", "never claimed"], async (ofKey) => {
        await inTurn(outcomes, async (outcome) => {
          const rule = `there must be nothing to decide on the key that is ${ofKey}`;
          assert.equal(await store.resolve(ofKey, outcome), "not-held", rule);
        });
      });
      assert.deepEqual(await recordsOfEach(store), before, "it must change nothing");
    },
  },
  {
    name: "resolve as done makes a held key done, once, with what is known of its owner",
    async check({ store }) {
      const fence = await take(store, "a");
      await store.hold(key, "a", "in doubt");
      assertOk(await store.resolve(key, "done"), "a held key must be resolved");
      assert.deepEqual(
        await recordOf(store),
        { state: "done", token: "a", fence, fingerprint: fingerprintOf("a") },
        "a key that was resolved as done must be the done key of its owner",
      );
      assert.equal(await store.resolve(key, "released"), "not-held", "what was decided must stay decided");
      assertOk(await store.complete(key, "a"), "the late owner must learn that its key is done");
    },
  },
  {
    name: "resolve as released makes a held key absent, once, and its late owner has lost it",
    async check({ store }) {
      await take(store, "a");
      await store.hold(key, "a", "in doubt");
      assertOk(await store.resolve(key, "released"), "a held key must be resolved");
      assert.equal(await store.read(key), undefined, "a key that was resolved as released must be absent");
      assert.equal(await store.resolve(key, "done"), "not-held", "what was decided must stay decided");
      assert.equal(await store.complete(key, "a"), "lost", "the late owner must have lost the key");
      await take(store, "b");
      assert.equal(await store.complete(key, "a"), "lost", "the key must be the new owner's");
    },
  },
  {
    name: "resolve decides on a run whose lease has expired",
    async check(harness) {
      const { store } = harness;
      await takeAndExpire(harness, "a");
      assertOk(await store.resolve(key, "released"), "an expired run must be resolved as released");
      assert.equal(await store.read(key), undefined, "what was resolved as released must be absent");
      await takeAndExpire(harness, "b");
      assertOk(await store.resolve(key, "done"), "an expired run must be resolved as done");
      const { status } = await store.claim(key, claimBy(owner));
      assert.equal(status, "done", "what was resolved as done must be done");
    },
  },
];
