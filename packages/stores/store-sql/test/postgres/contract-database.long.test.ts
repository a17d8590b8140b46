import { fromPg } from "@countersign/store-sql/pg";
import { idempotencyStoreContract, nonceStoreContract } from "@countersign/store-contract";
import { createStores } from "@countersign/store-sql";
import { describe } from "@jest/globals";
import { testContract } from "@countersign/test-support/runs/contract.ts";
import { describeOnPostgres } from "@countersign/test-support/servers/engines.ts";
import type { Pool } from "pg";
import { idempotencyHarness, nonceHarness } from "./harness.ts";
import { inOrder } from "./payouts.ts";

type Create = NonNullable<Parameters<typeof idempotencyHarness>[1]>;

describe.each<[string, Create]>([
  [
    "beside transactions",
    ({ pool, ...options }) => createStores({ ...options, database: inOrder(fromPg(pool as Pool)) }),
  ],
  ["with prepared statements", (options) => createStores({ ...options, prepare: true })],
])("the contract of the stores %s", (_way, create) => {
  const without = ["engine", "durability"] as const;
  const keys = idempotencyStoreContract(() => idempotencyHarness({ hasClock: true }, create), { without });
  const nonces = nonceStoreContract(() => nonceHarness({ hasClock: true }, create), { without });
  testContract("idempotency store", keys, describeOnPostgres);
  testContract("nonce store", nonces, describeOnPostgres);
});
