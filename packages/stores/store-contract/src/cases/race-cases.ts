import assert from "node:assert/strict";
import { type Store, claimBy, recordOf, shortLeaseMs, take } from "../claims.ts";
import { type IdempotencyCase, idempotencyRules } from "../contract.ts";
import type { IdempotencyStoreHarness } from "../harness.ts";
import type { Step } from "../model/step.ts";
import { type Handle, World } from "../model/world.ts";
import { handlesOf, inTurn, needed, pass } from "../waiting.ts";

type Harness = IdempotencyStoreHarness;
/** `fence` is that of the owner: what an operator saw before anything else came. */
type StepOf = (key: string, fence: number) => Step;

const racers = 40;
const owner = "a";
const rival = "b";
const lease = { leaseMs: 60_000 };

const steps = {
  complete: (key) => ({ op: "complete", key, token: owner }),
  claim: (key) => ({ op: "claim", key, token: rival, ...lease, recovery: "rerun" }),
  claimUnderHold: (key) => ({ op: "claim", key, token: rival, ...lease, recovery: "hold" }),
  claimAgain: (key) => ({ op: "claim", key, token: owner, ...lease, recovery: "rerun" }),
  heartbeat: (key) => ({ op: "heartbeat", key, token: owner, ...lease }),
  release: (key) => ({ op: "release", key, token: owner }),
  hold: (key) => ({ op: "hold", key, token: owner, reason: "in doubt" }),
  resolveAsReleased: (key, fence) => ({ op: "resolve", key, outcome: "released", fence }),
  resolveAsDone: (key, fence) => ({ op: "resolve", key, outcome: "done", fence }),
  reopen: (key, fence) => ({ op: "reopen", key, fence }),
} satisfies Record<string, StepOf>;

interface State {
  /** How a key gets there from an expired run; undefined: nobody has ever claimed it. */
  readonly before?: readonly StepOf[];
  /** What is raced there, each with each and with itself. Alone, each of them succeeds. */
  readonly raced: readonly StepOf[];
}

const states: Readonly<Record<string, State>> = {
  "a key that was never claimed": { raced: [steps.claim, steps.claimAgain] },
  "a released key": { before: [steps.release], raced: [steps.claim, steps.claimAgain] },
  "an expired run": { before: [], raced: Object.values(steps).filter((step) => step !== steps.reopen) },
  "a held key": {
    before: [steps.hold],
    raced: [steps.complete, steps.claim, steps.resolveAsReleased, steps.resolveAsDone],
  },
  "a key that an operator released": {
    before: [steps.hold, steps.resolveAsReleased],
    raced: [steps.claim, steps.reopen],
  },
};

/** By whom the two steps are called; at once, unless it says otherwise. */
type Callers = readonly [Handle, Handle] | "in turn";

/** Several at once: a claim, and every step of an owner or an operator, is one atomic step. */
export const raceCases: readonly IdempotencyCase[] = [
  ...idempotencyRules([], {
    "of many concurrent claims exactly one is acquired, of an absent key and of an expired run": (harness) =>
      raceClaims(harness, [harness.store]),
  }),
  ...idempotencyRules(["another"], {
    "of many concurrent claims through several handles exactly one is acquired": async (harness) =>
      raceClaims(harness, await handlesOf(harness)),
    async "of two steps at once through two handles one comes first, and the other one sees it"(harness) {
      const world = worldOf(harness, needed(await harness.another?.()));
      await inTurn(Object.keys(states), (name) => raceSteps(world, name, [[0, 1]]));
    },
  }),
  ...idempotencyRules(["clock", "retention"], {
    async "pruning leaves a key alone that is claimed again meanwhile"(harness) {
      const { store } = harness;
      const keys = Array.from({ length: 20 }, (_, index) => `payout-${index}`);
      await inTurn(keys, async (ofKey) => {
        await take(store, owner, { key: ofKey });
        await store.complete(ofKey, owner);
      });
      await harness.advance?.(needed(store.retentionMs) + 1);
      const claims = (some: readonly string[]) =>
        some.map(async (ofKey) => take(store, rival, { key: ofKey }));
      await Promise.all([...claims(keys.slice(0, 10)), store.prune(), ...claims(keys.slice(10))]);
      await inTurn(keys, async (ofKey) => {
        const record = await recordOf(store, ofKey);
        assert.equal(record?.state, "running", "a key that is claimed again must not be pruned");
        assert.equal(record.token, rival, "a key that is claimed again must be its new owner's");
      });
    },
  }),
  ...Object.keys(states).map((name): IdempotencyCase => ({
    name: `of two steps at once on ${name} one comes first, and the other one sees it`,
    needs: [],
    check: (harness) => raceSteps(worldOf(harness, harness.store), name, ["in turn", [0, 0]]),
  })),
];

async function raceClaims(harness: Harness, stores: readonly Store[]): Promise<void> {
  const expired = ["expired-1", "expired-2", "expired-3"];
  await inTurn(expired, (ofKey) => take(harness.store, "late", { key: ofKey, leaseMs: shortLeaseMs }));
  await pass(harness, shortLeaseMs);
  await inTurn(["absent-1", "absent-2", "absent-3", ...expired], async (ofKey) => {
    const claims = stores.flatMap((store, handle) =>
      Array.from({ length: Math.ceil(racers / stores.length) }, async (_, index) => {
        const token = `${handle}-${index}`;
        return { token, result: await store.claim(ofKey, claimBy(token)) };
      }),
    );
    const ended = await Promise.all(claims);
    const winners = ended.filter(({ result }) => result.status === "acquired");
    assert.equal(winners.length, 1, `exactly one claim must be acquired, got ${winners.length}`);
    const record = await recordOf(harness.store, ofKey);
    assert.equal(record?.token, winners[0]?.token, "the key must be a run of the claim that was acquired");
    const others = ended.filter(({ result }) => result.status === "in-flight").length;
    assert.equal(others, ended.length - 1, "every other claim must be told that the key is in flight");
  });
}

// Not exact: on the clock of an engine, what remains of a lease is only bounded.
function worldOf(harness: Harness, another: Store): World {
  return new World(harness, another, false);
}

/** Takes each two steps in both orders of the calls, on a key of their own. */
async function raceSteps(world: World, name: string, callers: readonly Callers[]): Promise<void> {
  const { before, raced } = needed(states[name]);
  const races = callers.flatMap((by) =>
    raced.flatMap((one, first) =>
      raced.map((other, second) => ({
        key: `${name}: ${first} and ${second}, ${String(by)}`,
        one,
        other,
        by,
      })),
    ),
  );
  const keys = races.map(({ key }) => key);
  const stepOn = (key: string, step: StepOf): Step => step(key, world.fenceAbout(key, "present"));
  if (before !== undefined) {
    await inTurn(keys, (key) => world.takeUnseen({ ...steps.claimAgain(key), leaseMs: shortLeaseMs }, 0));
    await world.outlive(shortLeaseMs, keys);
    await inTurn(keys, (key) => inTurn(before, (step) => world.takeUnseen(stepOn(key, step), 0)));
  }
  await inTurn(races, async ({ key, one, other, by }) => {
    const two = [stepOn(key, one), stepOn(key, other)] as const;
    if (by === "in turn") await inTurn(two, (step) => world.take(step, 0));
    else await world.takeAtOnce(two, by);
  });
}
