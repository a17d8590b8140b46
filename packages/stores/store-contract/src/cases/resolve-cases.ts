import assert from "node:assert/strict";
import {
  type Store,
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
import type { IdempotencyStoreHarness } from "../harness.ts";
import type { IdempotencyCase } from "../contract.ts";
import { inTurn } from "../in-turn.ts";
import { owner, recordsOfEach, takeOneOfEach } from "../states.ts";
import { pass } from "../waiting.ts";

const outcomes = ["done", "released"] as const;

/** An operator's decision. */
export const resolveCases: readonly IdempotencyCase[] = [
  {
    name: "resolve has nothing to decide on a live run, a done key and an absent one",
    async check({ store }) {
      const releasedFence = await takeOneOfEach(store);
      const before = await recordsOfEach(store);
      await inTurn(["running", "done", "released", "never claimed"], async (ofKey) => {
        const fence = before[ofKey]?.fence ?? releasedFence;
        await inTurn(outcomes, async (outcome) => {
          const rule = `there must be nothing to decide on the key that is ${ofKey}`;
          assert.equal(await store.resolve(ofKey, outcome, { fence }), "not-held", rule);
        });
      });
      assert.deepEqual(await recordsOfEach(store), before, "it must change nothing");
    },
  },
  {
    name: "resolve as done makes a held key done, once, with the fence and the fingerprint of its attempt",
    async check({ store }) {
      const fence = await take(store, "a");
      await store.hold(key, "a", "in doubt");
      assertOk(await store.resolve(key, "done", { fence }), "a held key must be resolved");
      const record = await recordOf(store);
      assert.equal(record?.state, "done", "a key that was resolved as done must be done");
      assert.equal(record.fence, fence, "it must keep its fence");
      assert.equal(record.fingerprint, fingerprintOf("a"), "it must keep its fingerprint");
      await inTurn(outcomes, async (outcome) => {
        const rule = "what was decided must stay decided";
        assert.equal(await store.resolve(key, outcome, { fence }), "not-held", rule);
      });
      const claimed = await store.claim(key, claimBy("b"));
      const expected = { status: "done", fingerprint: fingerprintOf("a") };
      assert.deepEqual({ ...claimed }, expected, "what was decided must be told to a claim");
    },
  },
  {
    name: "resolve as released makes a held key absent, once, and its late owner has lost it",
    async check({ store }) {
      const fence = await take(store, "a");
      await store.hold(key, "a", "in doubt");
      assertOk(await store.resolve(key, "released", { fence }), "a held key must be resolved");
      assert.equal(await store.read(key), undefined, "a key that was resolved as released must be absent");
      await inTurn(outcomes, async (outcome) => {
        const rule = "what was decided must stay decided";
        assert.equal(await store.resolve(key, outcome, { fence }), "not-held", rule);
      });
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
      assertOk(await decide(store, key, "released"), "an expired run must be resolved as released");
      assert.equal(await store.read(key), undefined, "what was resolved as released must be absent");
      await takeAndExpire(harness, "b");
      assertOk(await decide(store, key, "done"), "an expired run must be resolved as done");
      const { status } = await store.claim(key, claimBy(owner));
      assert.equal(status, "done", "what was resolved as done must be done");
    },
  },
  {
    name: "resolve takes the key from its owner, who has lost it, whatever it tries when it wakes up",
    async check(harness) {
      const { store } = harness;
      const keys = await takeUndecided(harness);
      await inTurn(keys, async ({ ofKey, outcome, fence }) => {
        assertOk(await store.resolve(ofKey, outcome, { fence }), `${ofKey} must be resolved`);
        await assertAllLost(store, ofKey);
      });
      const tokens = await Promise.all(keys.map(async ({ ofKey }) => (await store.read(ofKey))?.token));
      const known = tokens.filter((token) => token !== undefined);
      assert.equal(new Set(known).size, known.length, "each decision must have a token that nobody has");
      await inTurn(
        keys.filter(({ outcome }) => outcome === "released"),
        async ({ ofKey }) => {
          await take(store, "b", { key: ofKey });
          await assertAllLost(store, ofKey);
        },
      );
    },
  },
  {
    name: "resolve with any other fence than the attempt's decides nothing",
    async check(harness) {
      const { store } = harness;
      await inTurn(await takeUndecided(harness), async ({ ofKey, outcome, fence }) => {
        const before = await recordOf(store, ofKey);
        await inTurn([fence - 1, fence + 1, 0, Number.MAX_SAFE_INTEGER], async (other) => {
          const rule = `the fence ${other} must not decide about ${fence}`;
          assert.equal(await store.resolve(ofKey, outcome, { fence: other }), "not-held", rule);
        });
        assert.deepEqual(await recordOf(store, ofKey), before, "it must change nothing");
        assertOk(await store.resolve(ofKey, outcome, { fence }), "its own fence must decide");
      });
    },
  },
  {
    name: "a decision about an earlier attempt ends no later one, whether it runs, has expired or is held",
    async check(harness) {
      const { store } = harness;
      const assertUndecided = async (fence: number, rule: string): Promise<void> => {
        const before = await recordOf(store);
        await inTurn(outcomes, async (outcome) => {
          assert.equal(await store.resolve(key, outcome, { fence }), "not-held", rule);
        });
        assert.deepEqual(await recordOf(store), before, rule);
      };
      const first = await takeAndExpire(harness, "a");
      await takeOver(store, "b");
      await assertUndecided(first, "the attempt that took over must run on");
      assertOk(await store.release(key, "b"), "the attempt that took over must still have the key");
      const third = await takeAndExpire(harness, "c");
      await assertUndecided(first, "an expired attempt must wait for a decision of its own");
      await store.hold(key, "c", "in doubt");
      await assertUndecided(first, "a held attempt must wait for a decision of its own");
      assertOk(await store.resolve(key, "released", { fence: third }), "its own fence must decide");
    },
  },
];

interface Undecided {
  readonly ofKey: string;
  readonly outcome: (typeof outcomes)[number];
  readonly fence: number;
}

/** For each outcome a key of the owner that is held, and one whose run has expired. */
async function takeUndecided(harness: IdempotencyStoreHarness<unknown>): Promise<readonly Undecided[]> {
  const { store } = harness;
  const undecided: Undecided[] = [];
  await inTurn(outcomes, async (outcome) => {
    const held = `held, then ${outcome}`;
    undecided.push({ ofKey: held, outcome, fence: await take(store, owner, { key: held }) });
    await store.hold(held, owner, "in doubt");
    const expired = `expired, then ${outcome}`;
    const fence = await take(store, owner, { key: expired, leaseMs: shortLeaseMs });
    undecided.push({ ofKey: expired, outcome, fence });
  });
  await pass(harness, shortLeaseMs);
  return undecided;
}

async function assertAllLost(store: Store, ofKey: string): Promise<void> {
  const before = await recordOf(store, ofKey);
  const rule = (step: string): string => `${step} of the old owner must be lost: ${ofKey}`;
  assert.equal(await store.heartbeat(ofKey, owner, longLeaseMs), "lost", rule("a heartbeat"));
  assert.equal(await store.complete(ofKey, owner), "lost", rule("a completion"));
  assert.equal(await store.release(ofKey, owner), "lost", rule("a release"));
  assert.equal(await store.hold(ofKey, owner, "late"), "lost", rule("a hold"));
  assert.deepEqual(await recordOf(store, ofKey), before, "what is lost must change nothing");
}
