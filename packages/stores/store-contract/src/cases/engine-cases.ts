import assert from "node:assert/strict";
import type { Awaitable } from "@countersign/idempotency";
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
import { type CaseDefinition, rules } from "../contract.ts";
import type { StoreHarness } from "../harness.ts";
import { inTurn, needed, outcomeOf, pause, within } from "../waiting.ts";

export type Call = readonly [method: string, call: () => unknown];

export interface StoreKind<Tested> {
  readonly begin: (store: Tested) => Promise<void>;
  readonly look: (store: Tested) => Promise<unknown>;
  /** Throws when the full store has given one of these records away. `before` is what `look` gave. */
  readonly assertKept: (store: Tested, before: unknown) => Promise<void>;
  /** Adds a record of one more owner; can be repeated. */
  readonly add: (store: Tested) => Awaitable<unknown>;
  readonly assertAdded: (store: Tested) => Promise<void>;
  /** A call of each method that changes nothing in these records, however late an engine executes it. */
  readonly calls: (store: Tested) => readonly Call[];
}

/** What a store does when it cannot do its work: it throws, and forgets nothing. */
export function engineCases<Tested extends { close?(): unknown }>(
  kind: StoreKind<Tested>,
): readonly CaseDefinition<StoreHarness<Tested>>[] {
  return [
    ...rules<StoreHarness<Tested>>(["close"], {
      async "every call after close throws"({ store }) {
        await kind.begin(store);
        await store.close?.();
        await assertThrows(kind.calls(store), "after close");
      },
    }),
    ...rules<StoreHarness<Tested>>(["fill"], {
      async "a full store refuses a further record by a throw, and evicts nothing that is alive"(harness) {
        const { store } = harness;
        await kind.begin(store);
        const before = await kind.look(store);
        await harness.fill?.();
        const { error } = await outcomeOf(() => kind.add(store));
        assert.ok(error !== undefined, "a record that finds no room must be refused by a throw");
        await kind.assertKept(store, before);
      },
    }),
    ...rules<StoreHarness<Tested>>(["engine"], {
      async "every call while the engine is stopped is rejected in time, and none is answered by a guess"(
        harness,
      ) {
        await kind.begin(harness.store);
        await withStoppedEngine(harness, kind.calls(harness.store));
      },
      async "after the engine is back the store works again by itself"(harness) {
        const { store } = harness;
        await kind.begin(store);
        await withStoppedEngine(harness, []);
        // The first attempts may fail, and may have been executed: they are one call, with one token.
        await afterRecovery(harness, () => kind.add(store));
        await kind.assertAdded(store);
      },
    }),
    ...rules<StoreHarness<Tested>>(["engine", "durability"], {
      async "after the engine is back it has everything that was answered before"(harness) {
        const { store } = harness;
        await kind.begin(store);
        const before = await kind.look(store);
        await withStoppedEngine(harness, kind.calls(store));
        const after = await afterRecovery(harness, () => kind.look(store));
        assert.deepEqual(after, before, "no answer must be undone");
      },
    }),
  ];
}

async function assertThrows(calls: readonly Call[], when: string, ms = 5_000): Promise<void> {
  const ended = calls.map(async ([method, call]) => {
    const { error } = await within(ms, outcomeOf(call), `${method} must be rejected ${when}`);
    assert.ok(error !== undefined, `${method} must throw ${when}, and guess nothing`);
  });
  await Promise.all(ended);
}

export async function withStoppedEngine(
  { engine }: StoreHarness<unknown>,
  calls: readonly Call[],
): Promise<void> {
  const { rejectsWithinMs } = needed(engine);
  await engine?.stop();
  try {
    await assertThrows(calls, "while the engine is stopped", rejectsWithinMs);
  } finally {
    await engine?.start();
  }
}

/** What the call answers once the store has found its engine again. */
export async function afterRecovery<T>(
  { engine }: StoreHarness<unknown>,
  call: () => Awaitable<T>,
): Promise<T> {
  const { recoversWithinMs = 10_000 } = needed(engine);
  const deadline = performance.now() + recoversWithinMs;
  for (;;) {
    // oxlint-disable-next-line no-await-in-loop -- one attempt after the other
    const outcome = await outcomeOf(call);
    if (outcome.error === undefined) return outcome.value;
    if (performance.now() > deadline) {
      const message = `the store must work again within ${recoversWithinMs} ms of the engine's start`;
      throw new Error(message, { cause: outcome.error.thrown });
    }
    // oxlint-disable-next-line no-await-in-loop -- one attempt after the other
    await pause(50);
  }
}

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
  if (store.list !== undefined) calls.push(["list", () => store.list?.({ state: "running", limit: 10 })]);
  return calls;
}
