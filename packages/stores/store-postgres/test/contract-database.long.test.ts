import { fromPg } from "@countersign/databases";
import { idempotencyStoreContract, nonceStoreContract, defineCases } from "@countersign/store-contract";
import { createPostgresStores } from "@countersign/store-postgres";
import { describe, test } from "@jest/globals";
import { applicable } from "@countersign/test-support/runs/contract.ts";
import { describeOnPostgres } from "@countersign/test-support/servers/engines.ts";
import type { Pool } from "pg";
import { idempotencyHarness, nonceHarness } from "./harness.ts";
import { inOrder } from "./payouts.ts";

describe("the contract of the stores beside transactions", () => {
  const without = ["engine", "durability"] as const;
  const create: NonNullable<Parameters<typeof idempotencyHarness>[1]> = ({ pool, ...options }) =>
    createPostgresStores({ ...options, database: inOrder(fromPg(pool as Pool)) });
  defineCases(
    applicable(idempotencyStoreContract(() => idempotencyHarness({ hasClock: true }, create), { without })),
    { describe: describeOnPostgres, test, title: "idempotency store" },
  );
  defineCases(applicable(nonceStoreContract(() => nonceHarness({ hasClock: true }, create), { without })), {
    describe: describeOnPostgres,
    test,
    title: "nonce store",
  });
});
