import assert from "node:assert/strict";
import type { IdempotencyClaimResult } from "@countersign/idempotency";
import { type Store, claimBy, fenceOf, key, recordOf, shortLeaseMs, take, takeAndExpire } from "../claims.ts";
import type { IdempotencyStoreHarness } from "../harness.ts";
import type { IdempotencyCase } from "../contract.ts";
import { inTurn } from "../in-turn.ts";
import { anotherOf, pass } from "../waiting.ts";

const racers = 40;
const rounds = 5;

/** Many at once: a claim, and every step of an owner, is one atomic step. */
export const raceCases: readonly IdempotencyCase[] = [
  {
    name: "of many concurrent claims of an absent key exactly one is acquired",
    async check({ store }) {
      await inTurn(keys("absent"), (ofKey) => race([store], ofKey));
    },
  },
  {
    name: "of many concurrent claims through several handles exactly one is acquired",
    needs: ["another"],
    async check(harness) {
      const stores = await handles(harness);
      await inTurn(keys("shared"), (ofKey) => race(stores, ofKey));
    },
  },
  {
    name: "of many concurrent claims of an expired run exactly one takes it over",
    async check(harness) {
      const { store } = harness;
      await inTurn(keys("expired"), (ofKey) => take(store, "late", { key: ofKey, leaseMs: shortLeaseMs }));
      await pass(harness, shortLeaseMs);
      await inTurn(keys("expired"), (ofKey) => race([store], ofKey));
    },
  },
  {
    name: "of many concurrent claims of an expired run through several handles exactly one takes it over",
    needs: ["another"],
    async check(harness) {
      const stores = await handles(harness);
      await takeAndExpire(harness, "late");
      await race(stores, key);
    },
  },
  {
    name: "concurrent repetitions of one claim are all acquired, with one fence",
    async check({ store }) {
      const results = await Promise.all(
        Array.from({ length: racers }, async () => store.claim(key, claimBy("a"))),
      );
      const fences = results.map((result) => fenceOf(result, "each repetition must be acquired"));
      assert.equal(new Set(fences).size, 1, "all repetitions must get the same fence");
    },
  },
  {
    name: "an expired run is either completed by its owner or taken over, never both",
    async check(harness) {
      const { store } = harness;
      await inTurn(keys("late"), (ofKey) => take(store, "late", { key: ofKey, leaseMs: shortLeaseMs }));
      await pass(harness, shortLeaseMs);
      await inTurn(keys("late").entries(), async ([round, ofKey]) => {
        const [early, completed, late] = await Promise.all([
          // One connection answers in the order of the calls: in every second round the owner comes first.
          round % 2 === 0 ? store.claim(ofKey, claimBy("early")) : undefined,
          store.complete(ofKey, "late"),
          store.claim(ofKey, claimBy("later")),
        ]);
        const takers = [early, late].filter((result) => result?.status === "acquired").length;
        assert.equal(
          takers,
          completed === "ok" ? 0 : 1,
          `the owner's completion was ${completed}, and ${takers} claims were acquired`,
        );
      });
    },
  },
  {
    name: "of a reopening and a claim at once one comes first, and the other one sees it",
    async check({ store }) {
      await inTurn([0, 1, 2, 3, 4, 5], async (round) => {
        const ofKey = `key-${round}`;
        const fence = await take(store, "a", { key: ofKey });
        await store.hold(ofKey, "a", "in doubt");
        await store.resolve(ofKey, "released", { fence });
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
];

function keys(prefix: string): string[] {
  return Array.from({ length: rounds }, (_, index) => `${prefix}-${index}`);
}

async function handles(harness: IdempotencyStoreHarness<unknown>): Promise<Store[]> {
  const others = await Promise.all([anotherOf(harness), anotherOf(harness), anotherOf(harness)]);
  return [harness.store, ...others];
}

async function race(stores: readonly Store[], ofKey: string): Promise<void> {
  const claims = stores.flatMap((store, handle) =>
    Array.from({ length: Math.ceil(racers / stores.length) }, async (_, index) => {
      const token = `${handle}-${index}`;
      return { token, result: await store.claim(ofKey, claimBy(token)) };
    }),
  );
  const ended = await Promise.all(claims);
  const winners = ended.filter(({ result }) => result.status === "acquired");
  assert.equal(winners.length, 1, `exactly one claim must be acquired, got ${winners.length}`);
  const record = await recordOf(stores[0] ?? assert.fail("no store"), ofKey);
  assert.equal(record?.token, winners[0]?.token, "the key must be a run of the claim that was acquired");
  const others = ended.map(({ result }) => result).filter(({ status }) => status !== "acquired");
  assert.ok(others.every(isInFlight), "every other claim must be told that the key is in flight");
}

function isInFlight({ status }: IdempotencyClaimResult): boolean {
  return status === "in-flight";
}
