import { afterAll, describe, test } from "@jest/globals";
import { idempotencyStoreContract, nonceStoreContract, defineCases } from "@countersign/store-contract";
import { applicable } from "@countersign/test-support/runs/contract.ts";
import { postgresUrl } from "@countersign/test-support/servers/engines.ts";
import { startPgBouncer } from "@countersign/test-support/servers/pgbouncer.ts";
import { idempotencyHarness, nonceHarness } from "./harness.ts";

const bouncer = postgresUrl === undefined ? undefined : await startPgBouncer(postgresUrl, { poolSize: 5 });
const behindPgBouncer = bouncer === undefined ? describe.skip : describe;

afterAll(() => bouncer?.close());

// A server that others use is not stopped: engine.long.test.ts has one of its own.
const without = ["engine", "durability"] as const;
const engine = { url: bouncer?.url, hasClock: true };
defineCases(applicable(idempotencyStoreContract(() => idempotencyHarness(engine), { without })), {
  describe: behindPgBouncer,
  test,
  title: "idempotency store contract behind PgBouncer",
});
defineCases(applicable(nonceStoreContract(() => nonceHarness(engine), { without })), {
  describe: behindPgBouncer,
  test,
  title: "nonce store contract behind PgBouncer",
});
