import { setImmediate as nextTurn } from "node:timers/promises";
import { type IdempotencyStore, memoryIdempotencyStore } from "@countersign/idempotency";
import type { StoreHarnesses } from "@countersign/store-contract";
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { ReferenceStore } from "../../packages/stores/store-contract/dist/model/reference-store.js";
import { testClock } from "../../packages/stores/store-contract/test/memory-harness.ts";
import { idempotencyHarness as postgresHarness } from "../../packages/stores/store-sql/test/postgres/harness.ts";
import { connectRedis } from "../../packages/stores/store-redis/test/clients.ts";
import { idempotencyHarness as redisHarness } from "../../packages/stores/store-redis/test/harness.ts";
import * as fc from "fast-check";
import { fuzzRuns } from "../support/runs/share.ts";
import { describeOnPostgres, describeOnRedis, redisUrl } from "../support/servers/engines.ts";
import { type Contest, contested, contests, type Platform, record } from "./history.ts";
import { type Call, isLinearizable } from "./linearizability.ts";

type Harness = StoreHarnesses["idempotency"];

/** On a busy machine fewer contests are tried, and none is cut short. */
const propertyTimeMs = 7_000;
// SQLSTATE of a lock_timeout.
const lockNotAvailable = "55P03";

describe("memoryIdempotencyStore", () => agreesOnAnOrder(async () => memoryHarness(), 1_000));

describeOnRedis("createRedisStores", () => {
  const connect = () => connectRedis(redisUrl ?? "");
  agreesOnAnOrder(() => redisHarness({ connect, hasClock: true }), 300);
});

describeOnPostgres("createStores", () => {
  agreesOnAnOrder(() => postgresHarness({ hasClock: true }), 300);
});

describe("contests", () => {
  test("notice a claim that reads and writes in two steps", async () => {
    const harness = memoryHarness();
    const ground = await groundOf({ ...harness, store: inTwoSteps(harness.store) });
    const { failed } = await fc.check(oneOrder(ground), { numRuns: 500, endOnFailure: true });
    expect(failed).toBe(true);
  });
});

function memoryHarness(): Harness {
  const { now, advance } = testClock();
  const store = memoryIdempotencyStore({ max: 5_000, now });
  return { store, advance, close: () => store.close() };
}

function inTwoSteps(store: IdempotencyStore): IdempotencyStore {
  return {
    claim: async (key, claim) => {
      const found = await store.read(key);
      await nextTurn();
      const taken = await store.read(key);
      if (found === undefined && taken?.state === "running") await store.release(key, taken.token);
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

function agreesOnAnOrder(start: () => Promise<Harness>, numRuns: number): void {
  let harness: Harness;
  beforeAll(async () => {
    harness = await start();
  });
  afterAll(() => harness.close());

  test("answers concurrent steps as if they came one after the other, and pays at most once", async () => {
    const options = { ...fuzzRuns(numRuns), interruptAfterTimeLimit: propertyTimeMs };
    await fc.assert(oneOrder(await groundOf(harness)), options);
  });
}

interface Ground {
  readonly harness: Harness;
  readonly stores: Platform["stores"];
}

async function groundOf(harness: Harness): Promise<Ground> {
  return { harness, stores: [harness.store, (await harness.another?.()) ?? harness.store] };
}

/** Each contest is about a key of its own. */
function oneOrder(ground: Ground): fc.IAsyncProperty<[Contest]> {
  let keys = 0;
  return fc.asyncProperty(contests(), (contest) => {
    keys += 1;
    return expectOneOrder(ground, contest, `${contested} ${keys}`);
  });
}

async function expectOneOrder(
  { harness, stores }: Ground,
  { before, passedMs, programs }: Contest,
  key: string,
): Promise<void> {
  const platform: Platform = {
    key,
    stores,
    gaveUpWaiting: (error) =>
      error instanceof Error && Reflect.get(error.cause ?? error, "code") === lockNotAvailable,
  };
  const reference = new ReferenceStore({ retentionMs: harness.store.retentionMs ?? Infinity });
  const earlier = await record(platform, [{ by: 0, steps: before }]);
  for (const { step, answer } of earlier) expect(answer).toEqual(reference.apply(step, answer));
  await harness.advance?.(passedMs);
  reference.nowMs += passedMs;
  const calls = await record(platform, [...programs]);
  // After all of them: whatever was answered has to agree with what remained.
  const [last] = await record(platform, [{ by: 1, steps: [{ op: "read", key }] }]);
  const read = { step: last!.step, answer: last!.answer, sentAt: Infinity, answeredAt: Infinity };
  expect({ calls, read, isLinearizable: isLinearizable([...calls, read], reference) }).toMatchObject({
    isLinearizable: true,
  });
  expectOnePayment([...earlier, ...calls]);
}

/** I1, by the accounts of the owners. */
function expectOnePayment(calls: readonly Call[]): void {
  const payers = new Set<string>();
  for (const { step, answer } of calls) {
    if (answer === "ok" && step.op === "complete") payers.add(step.token);
  }
  expect(payers.size).toBeLessThanOrEqual(1);
}
