import { afterAll, beforeAll, describe, test } from "@jest/globals";
import * as fc from "fast-check";
import { drivers } from "../../packages/stores/store-sqlite/test/connections.ts";
import { describeOnPostgres, describeOnRedis, postgresUrl, redisUrl } from "../support/engines.ts";
import { fuzzRuns } from "../support/fuzz-runs.ts";
import { memoryEngine, sqliteEngine } from "./embedded-engines.ts";
import { type Engine, propertyTimeMs } from "./engine.ts";
import { followsReference } from "./follows-reference.ts";
import { postgresEngine } from "./postgres-engine.ts";
import { redisEngine } from "./redis-engine.ts";

describe("memoryIdempotencyStore", () => followsIt(async () => memoryEngine()));

describe.each(drivers)("createSqliteStores on %s", (_driver, connect) => {
  followsIt(async () => sqliteEngine(connect));
});

describeOnRedis("createRedisStores", () => followsIt(() => redisEngine(redisUrl ?? "")));

describeOnPostgres("createPostgresStores", () => followsIt(() => postgresEngine(postgresUrl ?? "")));

function followsIt(start: () => Promise<Engine>): void {
  let engine: Engine;
  beforeAll(async () => {
    engine = await start();
  });
  afterAll(() => engine.close());

  test("answers as the state machine does under any order of steps, and keeps I1 to I3", async () => {
    await fc.assert(followsReference(engine), {
      ...fuzzRuns(engine.numRuns),
      interruptAfterTimeLimit: propertyTimeMs,
    });
  }, 30_000);
}
