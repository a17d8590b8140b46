import { setImmediate as nextTurn } from "node:timers/promises";
import type { IdempotencyStore } from "@countersign/idempotency";
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { ReferenceStore } from "../../packages/stores/store-contract/dist/model/reference-store.js";
import * as fc from "fast-check";
import { fuzzRuns } from "../support/runs/share.ts";
import { describeOnPostgres, describeOnRedis, postgresUrl, redisUrl } from "../support/servers/engines.ts";
import { type Clock, type Engine, memoryEngine, type Platform, retentionMs } from "./engine.ts";
import { type Contest, contested, contests, record } from "./history.ts";
import { type Call, isLinearizable } from "./linearizability.ts";
import { postgresEngine } from "./postgres-engine.ts";
import { redisEngine } from "./redis-engine.ts";

const startMs = 1_800_000_000_000;
/** On a busy machine fewer contests are tried, and none is cut short. */
const propertyTimeMs = 7_000;

describe("memoryIdempotencyStore", () => agreesOnAnOrder(async () => memoryEngine()));

describeOnRedis("createRedisStores", () => agreesOnAnOrder(() => redisEngine(redisUrl ?? "")));

describeOnPostgres("createPostgresStores", () => agreesOnAnOrder(() => postgresEngine(postgresUrl ?? "")));

describe("contests", () => {
  test("notice a claim that reads and writes in two steps", async () => {
    const engine = memoryEngine();
    const open = async (clock: Clock): Promise<Platform> => {
      const platform = await engine.open(clock);
      return { ...platform, store: (index) => inTwoSteps(platform.store(index)) };
    };
    const property = fc.asyncProperty(contests(engine), (contest) =>
      expectOneOrder({ ...engine, open }, contest),
    );
    const { failed } = await fc.check(property, { numRuns: 500, endOnFailure: true });
    expect(failed).toBe(true);
  });
});

function inTwoSteps(store: IdempotencyStore): IdempotencyStore {
  return {
    claim: async (key, claim) => {
      const found = await store.read(key);
      await nextTurn();
      const taken = await store.read(key);
      if (found === undefined && taken?.state === "run") await store.release(key, taken.token);
      return store.claim(key, claim);
    },
    read: (key) => store.read(key),
    heartbeat: (key, token, ms) => store.heartbeat(key, token, ms),
    complete: (key, token) => store.complete(key, token),
    release: (key, token) => store.release(key, token),
    hold: (key, token, reason) => store.hold(key, token, reason),
    resolve: (key, outcome, decision) => store.resolve(key, outcome, decision),
    reopen: (key, decision) => store.reopen(key, decision),
    readReleased: (key) => store.readReleased(key),
    prune: () => store.prune(),
    close: () => store.close(),
  };
}

function agreesOnAnOrder(start: () => Promise<Engine>): void {
  let engine: Engine;
  beforeAll(async () => {
    engine = await start();
  });
  afterAll(() => engine.close());

  test("answers concurrent steps as if they came one after the other, and pays at most once", async () => {
    const property = fc.asyncProperty(contests(engine), (contest) => expectOneOrder(engine, contest));
    await fc.assert(property, { ...fuzzRuns(engine.numRuns), interruptAfterTimeLimit: propertyTimeMs });
  }, 30_000);
}

async function expectOneOrder(engine: Engine, { before, passedMs, programs }: Contest): Promise<void> {
  const clock = { nowMs: startMs };
  const platform = await engine.open(clock);
  try {
    const reference = new ReferenceStore({ retentionMs });
    const earlier = await record(platform, [{ by: 0, steps: before }]);
    for (const { step, answer } of earlier) expect(answer).toEqual(reference.apply(step, answer));
    clock.nowMs += passedMs;
    reference.nowMs += passedMs;
    const calls = await record(platform, [...programs]);
    // After all of them: whatever was answered has to agree with what remained.
    const [last] = await record(platform, [{ by: 1, steps: [{ op: "read", key: contested }] }]);
    const read = { step: last!.step, answer: last!.answer, sentAt: Infinity, answeredAt: Infinity };
    expect({ calls, read, isLinearizable: isLinearizable([...calls, read], reference) }).toMatchObject({
      isLinearizable: true,
    });
    await expectOnePayment(platform, [...earlier, ...calls]);
  } finally {
    await platform.close();
  }
}

/** I1, by the accounts of the owners and by the payments on record. */
async function expectOnePayment(platform: Platform, calls: readonly Call[]): Promise<void> {
  const payers = new Set<string>();
  let transactions = 0;
  for (const { step, answer } of calls) {
    const pays = step.op === "pay" && step.ending === "commit";
    if (answer !== "ok" || (!pays && step.op !== "complete")) continue;
    payers.add(step.token);
    if (pays) transactions += 1;
  }
  expect(payers.size).toBeLessThanOrEqual(1);
  expect(transactions).toBeLessThanOrEqual(1);
  if (platform.payments !== undefined) expect(await platform.payments.paidKeys()).toHaveLength(transactions);
}
