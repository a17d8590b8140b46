import assert from "node:assert/strict";
import { leaseExpired, type IdempotencyDecision } from "@countersign/idempotency";
import {
  type Store,
  assertOk,
  decisionOf,
  fingerprintOf,
  keptOf,
  key,
  take,
  takeAndExpire,
} from "../claims.ts";
import { hostileTexts } from "../hostile-texts.ts";
import type { IdempotencyCase } from "../contract.ts";
import { inTurn } from "../in-turn.ts";
import { heldReason } from "../states.ts";
import { advance, retentionMsOf } from "../waiting.ts";

export const outcomes = ["done", "released"] as const;
type Outcome = (typeof outcomes)[number];

/** Who decides in most cases. */
export const operator = { by: "anna", note: "TICKET-1" } as const;

/** Takes the key, holds it and decides about it. Returns the fence that was decided about. */
export async function holdAndResolve(
  store: Store,
  outcome: Outcome,
  { ofKey = key, ...given }: Partial<IdempotencyDecision> & { readonly ofKey?: string } = {},
): Promise<number> {
  const fence = await take(store, "a", { key: ofKey });
  assertOk(await store.hold(ofKey, "a", heldReason), "an owner must be able to hold its run");
  assertOk(await store.resolve(ofKey, outcome, { ...given, fence }), "a held key must be resolved");
  return fence;
}

/** What an operator decided stays on the record. */
export const decisionCases: readonly IdempotencyCase[] = [
  {
    name: "a decision is kept: its outcome, its fence, by whom, why, when, and the hold's own reason",
    async check({ store }) {
      await inTurn(outcomes, async (outcome) => {
        const fence = await holdAndResolve(store, outcome, { ofKey: outcome, ...operator });
        const { at, ...kept } = await keptOf(store, outcome);
        assert.deepEqual(kept, { outcome, fence, reason: heldReason, ...operator });
        assert.ok(Number.isSafeInteger(at), "the time of a decision must be whole milliseconds");
        assert.ok(at > 946_684_800_000 && at < 4_102_444_800_000, "it must be a time of this century");
      });
      const released = await store.readReleased("released");
      assert.equal(released?.state, "free", "what was released must be told as free");
      assert.equal(released.fence, released.decision.fence, "it must keep its fence");
      assert.equal(released.fingerprint, fingerprintOf("a"), "it must keep its fingerprint");
      assert.equal(await store.read("released"), undefined, "it must be absent to who reads");
      assert.equal(await store.readReleased("done"), undefined, "what is done must not be told as free");
    },
  },
  {
    name: "a decision without a name and a note is kept without them",
    async check({ store }) {
      await inTurn(outcomes, async (outcome) => {
        await holdAndResolve(store, outcome, { ofKey: outcome });
        const { by, note } = await keptOf(store, outcome);
        assert.deepEqual({ by, note }, { by: undefined, note: undefined }, "nobody gave a name or a note");
      });
    },
  },
  {
    name: "a decision about an expired run keeps the reason of one",
    async check(harness) {
      const { store } = harness;
      const fence = await takeAndExpire(harness, "a");
      assertOk(await store.resolve(key, "done", { fence }), "an expired run must be resolved");
      assert.equal((await keptOf(store)).reason, leaseExpired, "it must say that the lease had expired");
    },
  },
  {
    name: "hostile names, notes and reasons of a decision are given back unchanged",
    async check({ store }) {
      const texts = hostileTexts.map((text, index) => ({ text, ofKey: `key-${index}` }));
      await inTurn(texts, async ({ text, ofKey }) => {
        const [by, reason] = [text.slice(0, 128), text.slice(0, 256)];
        const fence = await take(store, "a", { key: ofKey });
        await store.hold(ofKey, "a", reason);
        assertOk(await store.resolve(ofKey, "released", { fence, by, note: text }), "it must be resolved");
        const rule = `the text ${JSON.stringify(text.slice(0, 40))} must be given back unchanged`;
        const { at: _at, ...kept } = await keptOf(store, ofKey);
        assert.deepEqual(kept, { outcome: "released", fence, reason, by, note: text }, rule);
        assertOk(await store.reopen(ofKey, { fence, by, note: text }), "it must be reopened");
        const { reopened } = await keptOf(store, ofKey);
        assert.deepEqual([reopened?.by, reopened?.note], [by, text], rule);
        const record = await store.read(ofKey);
        assert.equal(record?.state === "held" ? record.reason : undefined, reason, rule);
      });
    },
  },
  {
    name: "a decision stays on the record of the next attempt, whatever that does",
    async check({ store }) {
      const assertKept = async (ofKey: string, expected: unknown, rule: string): Promise<void> => {
        assert.deepEqual(await decisionOf(store, ofKey), expected, rule);
      };
      await inTurn(["complete", "release"] as const, async (end) => {
        await holdAndResolve(store, "released", { ofKey: end, ...operator });
        const kept = await keptOf(store, end);
        await take(store, "b", { key: end });
        await assertKept(end, kept, "a claim must leave the decision on the record");
        await store.heartbeat(end, "b", 60_000);
        await assertKept(end, kept, "a heartbeat must leave the decision on the record");
        assertOk(await store[end](end, "b"), "the next attempt must end its own run");
        await assertKept(end, kept, `the decision must be kept behind a ${end} of the next attempt`);
      });
      await holdAndResolve(store, "released", { ofKey: "hold", ...operator });
      const kept = await keptOf(store, "hold");
      const fence = await take(store, "b", { key: "hold" });
      assertOk(await store.hold("hold", "b", "again"), "the next attempt must hold its run");
      await assertKept("hold", kept, "a hold must leave the decision on the record");
      assertOk(await store.resolve("hold", "done", { fence, by: "ben" }), "it must be decided about anew");
      const { at: _at, ...anew } = await keptOf(store, "hold");
      const expected = { outcome: "done", fence, reason: "again", by: "ben" };
      assert.deepEqual(anew, expected, "a later decision must take the place of the earlier one");
    },
  },
  {
    name: "a decision is kept as long as a done key is remembered, pruned or not, and no longer",
    needs: ["clock", "retention"],
    async check(harness) {
      const { store } = harness;
      await holdAndResolve(store, "released", { ofKey: "released", ...operator });
      await holdAndResolve(store, "released", { ofKey: "run again", ...operator });
      await take(store, "b", { key: "run again" });
      assertOk(await store.release("run again", "b"), "the next attempt must release its run");
      await advance(harness, retentionMsOf(harness) - 1);
      await store.prune();
      await inTurn(["released", "run again"], async (ofKey) => {
        assert.ok(await store.readReleased(ofKey), "no release and no pruning must wipe out a decision");
      });
      await advance(harness, 1);
      const fence = (await store.readReleased("released"))?.fence;
      assert.equal(fence, undefined, "a decision must not be told after its retention");
      await take(store, "c", { key: "released" });
      const told = await decisionOf(store, "released");
      assert.equal(told, undefined, "a claim after its retention must not bring a decision back");
      await store.prune();
      assert.equal(await store.readReleased("run again"), undefined, "what is pruned must be gone");
    },
  },
  {
    name: "decisions and reopenings are timed by the store's clock",
    needs: ["clock"],
    async check(harness) {
      const { store } = harness;
      const fence = await holdAndResolve(store, "done");
      await advance(harness, 5_000);
      assertOk(await store.reopen(key, { fence }), "what an operator has done must be reopened");
      const { at, reopened } = await keptOf(store);
      assert.equal(reopened?.at, at + 5_000, "between both must be what has passed on the store's clock");
    },
  },
];
