// The histories of the contract, more of them than each contract run has, and on every driver of SQLite.
import { defineCases, idempotencyStoreContract, type StoreHarnesses } from "@countersign/store-contract";
import { describe, test } from "@jest/globals";
import { memoryHarness, testClock } from "../../packages/stores/store-contract/test/memory-harness.ts";
import { sqliteHarness } from "../../packages/stores/store-contract/test/sqlite-harness.ts";
import { idempotencyHarness as postgresHarness } from "../../packages/stores/store-sql/test/postgres/harness.ts";
import { connectRedis } from "../../packages/stores/store-redis/test/clients.ts";
import { idempotencyHarness as redisHarness } from "../../packages/stores/store-redis/test/harness.ts";
import { drivers } from "../../packages/stores/store-sql/test/sqlite/connections.ts";
import { describeOnPostgres, describeOnRedis, redisUrl } from "../support/servers/engines.ts";
import { fuzzRuns } from "../support/runs/share.ts";

const engine = ["engine", "durability"] as const;

follows("memoryIdempotencyStore", () => memoryHarness(testClock()));

for (const [driver, connect] of drivers) {
  follows(`createStores on ${driver}`, () => sqliteHarness("file", testClock(), connect));
}

describeOnRedis("Redis", () => {
  const connect = () => connectRedis(redisUrl ?? "");
  follows("createRedisStores", () => redisHarness({ connect, hasClock: true }));
});

describeOnPostgres("PostgreSQL", () => {
  follows("createStores", () => postgresHarness({ hasClock: true }));
});

function follows(
  title: string,
  makeStore: () => StoreHarnesses["idempotency"] | Promise<StoreHarnesses["idempotency"]>,
): void {
  const options = { without: engine, histories: fuzzRuns(1_000).numRuns };
  const cases = idempotencyStoreContract(makeStore, options);
  defineCases(
    cases.filter(({ name }) => name.startsWith("whatever steps come")),
    { describe, test, title },
  );
}
