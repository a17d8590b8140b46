import assert from "node:assert/strict";
import {
  type Known,
  type Store,
  assertOk,
  claimBy,
  fenceOf,
  key,
  longLeaseMs,
  recordOf,
  take,
} from "../claims.ts";
import { inTurn, outcomeOf } from "../waiting.ts";
import { type Call, engineCases } from "./engine-cases.ts";

const owner = "owner";

/** A key in each state that a key can be in; what is not absent is the owner's. */
const states = ["running", "held", "done", "released", "never claimed"];

export const idempotencyEngineCases = engineCases<Store>({
  begin: takeOneOfEach,
  look: recordsOfEach,
  async assertKept(store, before) {
    assert.equal(await store.read(key), undefined, "a claim that threw must not have taken the key");
    assert.deepEqual(await recordsOfEach(store), before, "no key that is alive must be evicted");
    await inTurn(states.slice(0, 3), async (ofKey) => {
      const { value } = await outcomeOf(() => store.claim(ofKey, claimBy("late")));
      assert.notEqual(value?.status, "acquired", `the key that is ${ofKey} must not be given away`);
    });
  },
  add: (store) => store.claim(key, claimBy("a")),
  async assertAdded(store) {
    fenceOf(await store.claim(key, claimBy("a")), "an absent key must be acquired after the engine is back");
    const { status } = await store.claim(key, claimBy("b"));
    assert.equal(status, "in-flight", "the key must be in flight to others");
    assert.equal(await store.complete(key, "a"), "ok", "the owner must be able to complete");
  },
  calls: callsOf,
});

async function takeOneOfEach(store: Store): Promise<void> {
  await inTurn(states.slice(0, 4), (ofKey) => take(store, owner, { key: ofKey }));
  assertOk(await store.hold("held", owner, "the bank did not answer"), "an owner must be able to hold");
  assertOk(await store.complete("done", owner), "an owner must be able to complete");
  assertOk(await store.release("released", owner), "an owner must be able to release");
}

async function recordsOfEach(store: Store): Promise<Record<string, Known | undefined>> {
  const records: Record<string, Known | undefined> = {};
  await inTurn(states, async (ofKey) => {
    records[ofKey] = await recordOf(store, ofKey);
  });
  return records;
}

function callsOf(store: Store): readonly Call[] {
  const calls: Call[] = [
    ["claim", () => store.claim("claimed without an answer", claimBy("a"))],
    ["read", () => store.read("running")],
    ["heartbeat", () => store.heartbeat("running", "stranger", longLeaseMs)],
    ["complete", () => store.complete("running", "stranger")],
    ["release", () => store.release("running", "stranger")],
    ["hold", () => store.hold("running", "stranger", "reason")],
    ["resolve", () => store.resolve("running", "released", { fence: 0 })],
    ["reopen", () => store.reopen("running", { fence: 0 })],
    ["readReleased", () => store.readReleased("running")],
    ["prune", () => store.prune()],
  ];
  if (store.list !== undefined) calls.push(["list", () => store.list?.({ state: "run", limit: 10 })]);
  return calls;
}
