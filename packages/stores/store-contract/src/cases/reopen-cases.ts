import assert from "node:assert/strict";
import {
  type Store,
  assertOk,
  claimBy,
  fenceOf,
  fingerprintOf,
  keptOf,
  key,
  longLeaseMs,
  recordOf,
  shortLeaseMs,
  take,
} from "../claims.ts";
import type { IdempotencyCase } from "../contract.ts";
import { inTurn } from "../in-turn.ts";
import { heldReason } from "../states.ts";
import { completeAlone } from "../transactions.ts";
import { advance, pass, retentionMsOf } from "../waiting.ts";
import { holdAndResolve, operator, outcomes } from "./decision-cases.ts";

/** An operator takes a decision back. */
export const reopenCases: readonly IdempotencyCase[] = [
  {
    name: "reopen takes a decision back: the key is held again, for its own reason, under a higher fence",
    async check({ store }) {
      await inTurn(outcomes, async (outcome) => {
        const fence = await holdAndResolve(store, outcome, { ofKey: outcome, ...operator });
        const decided = await keptOf(store, outcome);
        const reopening = { by: "ben", note: "the bank has no such payment" };
        assertOk(await store.reopen(outcome, { fence, ...reopening }), `what is ${outcome} must be reopened`);
        const record = await recordOf(store, outcome);
        if (record?.state !== "held") assert.fail(`a reopened key must be held, got ${record?.state}`);
        assert.equal(record.reason, heldReason, "it must be held for the reason of before");
        assert.equal(record.fingerprint, fingerprintOf("a"), "it must keep its fingerprint");
        assert.ok(record.fence > fence, "a decision about the fence of before must not fit any more");
        const { reopened, ...kept } = await keptOf(store, outcome);
        assert.deepEqual(kept, decided, "the decision must stay on the record");
        const { by, note, at = 0 } = reopened ?? {};
        assert.deepEqual({ by, note }, reopening, "who reopened it must be kept");
        assert.ok(at >= decided.at, "when it was reopened must be kept");
        assert.equal(await store.readReleased(outcome), undefined, "it must not be told as free");
        const claimed = await store.claim(outcome, claimBy("b"));
        const expected = { status: "held", fingerprint: fingerprintOf("a"), reason: heldReason };
        assert.deepEqual({ ...claimed }, expected, "a claim must be told that it is held");
      });
    },
  },
  {
    name: "reopen never takes back what an attempt has ended itself",
    async check({ store }) {
      const assertOwn = async (ofKey: string, fence: number): Promise<void> => {
        const before = await recordOf(store, ofKey);
        const rule = `what an attempt has ended itself must stay so: ${ofKey}`;
        assert.equal(await store.reopen(ofKey, { fence }), "not-decided", rule);
        assert.deepEqual(await recordOf(store, ofKey), before, rule);
      };
      await inTurn(["complete", "release"] as const, async (end) => {
        const first = await take(store, "a", { key: end });
        await store[end](end, "a");
        await assertOwn(end, first);
        const behind = `${end}, behind a decision about another attempt`;
        await holdAndResolve(store, "released", { ofKey: behind });
        const fence = await take(store, "b", { key: behind });
        await store[end](behind, "b");
        await assertOwn(behind, fence);
      });
      const fence = await take(store, "a", { key: "done while held" });
      await store.hold("done while held", "a", heldReason);
      await store.complete("done while held", "a");
      await assertOwn("done while held", fence);
    },
  },
  {
    name: "reopen has nothing to take back on a run, a held key and an absent one",
    async check(harness) {
      const { store } = harness;
      const fences = new Map([["never claimed", 1]]);
      await inTurn(["running", "expired", "held"], async (ofKey) => {
        const leaseMs = ofKey === "expired" ? shortLeaseMs : longLeaseMs;
        fences.set(ofKey, await take(store, "a", { key: ofKey, leaseMs }));
      });
      await store.hold("held", "a", heldReason);
      await pass(harness, shortLeaseMs);
      await inTurn(fences, async ([ofKey, fence]) => {
        const before = await recordOf(store, ofKey);
        const rule = `there must be nothing to take back on the key that is ${ofKey}`;
        assert.equal(await store.reopen(ofKey, { fence }), "not-decided", rule);
        assert.deepEqual(await recordOf(store, ofKey), before, "it must change nothing");
      });
    },
  },
  {
    name: "reopen leaves a released key to the attempt that has claimed it since, by whichever fence",
    async check(harness) {
      const { store } = harness;
      const ends: readonly (readonly [string, (ofKey: string) => unknown])[] = [
        ["runs", () => undefined],
        ["is held", (ofKey) => store.hold(ofKey, "b", "again")],
        ["is done", (ofKey) => store.complete(ofKey, "b")],
        ["is free", (ofKey) => store.release(ofKey, "b")],
      ];
      await inTurn(ends, async ([ofKey, end]) => {
        const first = await holdAndResolve(store, "released", { ofKey });
        const second = await take(store, "b", { key: ofKey });
        await end(ofKey);
        const before = await recordOf(store, ofKey);
        const rule = `a key that ${ofKey} behind a new claim must not be reopened`;
        await inTurn([first, second], async (fence) => {
          assert.equal(await store.reopen(ofKey, { fence }), "not-decided", rule);
        });
        assert.deepEqual(await recordOf(store, ofKey), before, rule);
      });
    },
  },
  {
    name: "reopen with any other fence than the decision's takes nothing back",
    async check({ store }) {
      await inTurn(outcomes, async (outcome) => {
        const fence = await holdAndResolve(store, outcome, { ofKey: outcome });
        const before = await recordOf(store, outcome);
        await inTurn([fence - 1, fence + 1, 0, Number.MAX_SAFE_INTEGER], async (other) => {
          const rule = `the fence ${other} must not reopen ${fence}`;
          assert.equal(await store.reopen(outcome, { fence: other }), "not-decided", rule);
        });
        assert.deepEqual(await recordOf(store, outcome), before, "it must change nothing");
        assertOk(await store.reopen(outcome, { fence }), "its own fence must reopen it");
      });
    },
  },
  {
    name: "a decision and a reopening that are sent twice take effect once",
    async check({ store }) {
      await inTurn(outcomes, async (outcome) => {
        const fence = await holdAndResolve(store, outcome, { ofKey: outcome });
        assertOk(await store.reopen(outcome, { fence }), "a decision must be taken back");
        const reopened = await recordOf(store, outcome);
        const rule = "what was sent before the reopening must not decide behind it";
        assert.equal(await store.reopen(outcome, { fence }), "not-decided", rule);
        assert.equal(await store.resolve(outcome, outcome, { fence }), "not-held", rule);
        assert.deepEqual(await recordOf(store, outcome), reopened, rule);
        const anew = reopened?.fence ?? 0;
        assertOk(await store.resolve(outcome, outcome, { fence: anew }), "it must be decided about anew");
        assert.equal(await store.reopen(outcome, { fence }), "not-decided", rule);
        assertOk(await store.reopen(outcome, { fence: anew }), "the later decision must be taken back, too");
      });
    },
  },
  {
    name: "a reopening does not bring the old owner back, nor whatever token was read meanwhile",
    async check(harness) {
      const { store } = harness;
      await inTurn(outcomes, async (outcome) => {
        const fence = await holdAndResolve(store, outcome, { ofKey: outcome });
        const between = (await store.read(outcome))?.token;
        assertOk(await store.reopen(outcome, { fence }), "a decision must be taken back");
        const tokens = between === undefined ? ["a"] : ["a", between];
        await inTurn(tokens, (token) => assertDead(store, outcome, token));
        const anew = (await store.read(outcome))?.fence ?? 0;
        assertOk(await store.resolve(outcome, "released", { fence: anew }), "it must be decided about anew");
        await take(store, "b", { key: outcome });
        await assertDead(store, outcome, "a");
      });
    },
  },
  {
    name: "completeIn is lost to the old owner of a reopened key, so that its payment is rolled back",
    needs: ["transaction"],
    async check(harness) {
      const { store } = harness;
      await inTurn(outcomes, async (outcome) => {
        const fence = await holdAndResolve(store, outcome, { ofKey: outcome });
        assertOk(await store.reopen(outcome, { fence }), "a decision must be taken back");
        const rule = "the old owner must have lost the key";
        assert.equal(await completeAlone(harness, "a", outcome), "lost", rule);
        assert.equal((await store.read(outcome))?.state, "held", rule);
      });
    },
  },
  {
    name: "the fence grows over a reopening",
    async check({ store }) {
      const fence = await holdAndResolve(store, "released");
      assertOk(await store.reopen(key, { fence }), "a decision must be taken back");
      const reopened = (await store.read(key))?.fence ?? 0;
      assertOk(await store.resolve(key, "released", { fence: reopened }), "it must be decided about anew");
      const next = fenceOf(await store.claim(key, claimBy("b")), "a released key must be acquired");
      assert.ok(next > reopened, `the fence must grow over a reopening, got ${next} after ${reopened}`);
    },
  },
  {
    name: "of a reopening and a claim at once one comes first, and the other one sees it",
    async check({ store }) {
      await inTurn([0, 1, 2, 3, 4, 5], async (round) => {
        const ofKey = `key-${round}`;
        const fence = await holdAndResolve(store, "released", { ofKey });
        // One connection answers in the order of the calls: in every second round the claim comes first.
        const [early, reopened, late] = await Promise.all([
          round % 2 === 0 ? store.claim(ofKey, claimBy("b")) : undefined,
          store.reopen(ofKey, { fence }),
          round % 2 === 0 ? undefined : store.claim(ofKey, claimBy("b")),
        ]);
        const status = (early ?? late)?.status;
        const ended = `the claim was ${status}, the reopening ${reopened}`;
        const isOne = reopened === "ok" ? status === "held" : status === "acquired";
        assert.ok(isOne, `one must come first: ${ended}`);
        const state = (await store.read(ofKey))?.state;
        assert.equal(state, reopened === "ok" ? "held" : "run", `the record must agree: ${ended}`);
      });
    },
  },
  {
    name: "reopen finds nothing after the retention, pruned or not",
    needs: ["clock", "retention"],
    async check(harness) {
      const { store } = harness;
      const fences = new Map<string, number>();
      await inTurn(outcomes, async (outcome) => {
        fences.set(outcome, await holdAndResolve(store, outcome, { ofKey: outcome }));
      });
      await advance(harness, retentionMsOf(harness));
      await inTurn(["before", "after"], async (when) => {
        await inTurn(fences, async ([ofKey, fence]) => {
          const rule = `what is ${ofKey} must have ended with its retention, ${when} pruning`;
          assert.equal(await store.reopen(ofKey, { fence }), "not-decided", rule);
          assert.equal(await store.read(ofKey), undefined, rule);
        });
        await store.prune();
      });
    },
  },
  {
    name: "a reopened key stays, however old its decision is",
    needs: ["clock", "retention"],
    async check(harness) {
      const { store } = harness;
      await inTurn(outcomes, async (outcome) => {
        const fence = await holdAndResolve(store, outcome, { ofKey: outcome });
        assertOk(await store.reopen(outcome, { fence }), "a decision must be taken back");
      });
      await advance(harness, 2 * retentionMsOf(harness));
      await store.prune();
      await inTurn(outcomes, async (outcome) => {
        const record = await recordOf(store, outcome);
        assert.equal(record?.state, "held", "pruning must leave a reopened key alone");
        assert.ok(record.decision?.reopened, "with what was decided about it");
      });
    },
  },
];

async function assertDead(store: Store, ofKey: string, token: string): Promise<void> {
  const before = await recordOf(store, ofKey);
  const rule = (step: string): string => `${step} behind a reopening must be lost: ${ofKey}`;
  assert.equal(await store.heartbeat(ofKey, token, longLeaseMs), "lost", rule("a heartbeat"));
  assert.equal(await store.complete(ofKey, token), "lost", rule("a completion"));
  assert.equal(await store.release(ofKey, token), "lost", rule("a release"));
  assert.equal(await store.hold(ofKey, token, "late"), "lost", rule("a hold"));
  assert.deepEqual(await recordOf(store, ofKey), before, "what is lost must change nothing");
}
