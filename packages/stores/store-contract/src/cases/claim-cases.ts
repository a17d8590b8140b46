import assert from "node:assert/strict";
import {
  claimBy,
  fenceOf,
  fingerprintOf,
  key,
  longLeaseMs,
  recordOf,
  remainingMsOf,
  shortLeaseMs,
  take,
  takeAndExpire,
} from "../claims.ts";
import type { IdempotencyCase } from "../contract.ts";
import { inTurn } from "../in-turn.ts";
import { heldReason, owner, recordsOfEach, takeOneOfEach } from "../states.ts";
import { pass } from "../waiting.ts";

const recoveries = ["rerun", "hold"] as const;

/** Taking a key, and being told who has it. */
export const claimCases: readonly IdempotencyCase[] = [
  {
    name: "an absent key is given to its first claim, and reads as a run of its token",
    async check({ store }) {
      assert.equal(await store.read(key), undefined, "a key that nobody claimed must read as absent");
      const fence = await take(store, "a");
      assert.deepEqual(
        await recordOf(store),
        { state: "run", token: "a", fence, fingerprint: fingerprintOf("a") },
        "a run must be read with the token, the fence and the fingerprint of its claim",
      );
      assertRemaining(await remainingMsOf(store));
    },
  },
  {
    name: "a key in flight is refused to others, with its owner's fingerprint and what is left of the lease",
    async check({ store }) {
      const fence = await take(store, "a");
      await inTurn(recoveries, async (recovery) => {
        const result = await store.claim(key, claimBy("b", { recovery }));
        if (result.status !== "in-flight") {
          assert.fail(`a run whose lease is live must be in flight to other tokens, got ${result.status}`);
        }
        assert.equal(result.fingerprint, fingerprintOf("a"), "in flight must give the owner's fingerprint");
        assertRemaining(result.remainingMs);
      });
      assert.deepEqual(
        await recordOf(store),
        { state: "run", token: "a", fence, fingerprint: fingerprintOf("a") },
        "a claim that was refused must change nothing",
      );
    },
  },
  {
    name: "a claim repeated with its token, after a lost reply, is acquired again with the same fence",
    async check({ store }) {
      const fence = await take(store, "a");
      await inTurn(recoveries, async (recovery) => {
        const again = await store.claim(key, claimBy("a", { recovery }));
        const rule = "the owner's own claim must never see itself as somebody else's";
        assert.equal(fenceOf(again, rule), fence, "the owner's own claim must keep its fence");
      });
    },
  },
  {
    name: "a claim repeated with its token begins the lease anew",
    async check(harness) {
      const { store } = harness;
      await take(store, "a", { leaseMs: shortLeaseMs });
      await store.claim(key, claimBy("a"));
      await pass(harness, shortLeaseMs);
      const { status } = await store.claim(key, claimBy("b"));
      assert.equal(status, "in-flight", "the repeated claim must have begun a new lease");
    },
  },
  {
    name: "a claim of a done or held key says so to everybody, its owner included, and changes nothing",
    async check({ store }) {
      await takeOneOfEach(store);
      const before = await recordsOfEach(store);
      const fingerprint = fingerprintOf(owner);
      await inTurn([owner, "stranger"], async (token) => {
        await inTurn(recoveries, async (recovery) => {
          const done = await store.claim("done", claimBy(token, { recovery }));
          assert.deepEqual(
            { ...done },
            { status: "done", fingerprint },
            "a done key must be done to a claim",
          );
          const held = await store.claim("held", claimBy(token, { recovery }));
          const expected = { status: "held", fingerprint, reason: heldReason };
          assert.deepEqual({ ...held }, expected, "a held key must be held to a claim, with its reason");
        });
      });
      assert.deepEqual(await recordsOfEach(store), before, "these claims must change nothing");
    },
  },
  {
    name: "reading changes nothing, not even an expired run",
    async check(harness) {
      const { store } = harness;
      const fence = await takeAndExpire(harness, "a");
      await inTurn([1, 2], async () => {
        assert.deepEqual(
          await recordOf(store),
          { state: "run", token: "a", fence, fingerprint: fingerprintOf("a") },
          "an expired run that nobody claimed must read as a run",
        );
        assert.ok((await remainingMsOf(store)) <= 0, "nothing must remain of an expired lease");
      });
      await store.read("never claimed");
      await take(store, "b", { key: "never claimed" });
    },
  },
];

function assertRemaining(remainingMs: number): void {
  assert.ok(
    remainingMs > 0 && remainingMs <= longLeaseMs,
    `what remains of the lease must be above 0 and at most the lease, got ${remainingMs}`,
  );
}
