import { afterAll, describe } from "@jest/globals";
import { idempotencyStoreContract, nonceStoreContract } from "@countersign/store-contract";
import { testContract } from "@countersign/test-support/runs/contract.ts";
import { postgresUrl } from "@countersign/test-support/servers/engines.ts";
import { startPgBouncer } from "@countersign/test-support/servers/pgbouncer.ts";
import { idempotencyHarness, nonceHarness } from "./harness.ts";

const bouncer = postgresUrl === undefined ? undefined : await startPgBouncer(postgresUrl, { poolSize: 5 });
const behindPgBouncer = bouncer === undefined ? describe.skip : describe;

afterAll(() => bouncer?.close());

// A server that others use is not stopped: engine.long.test.ts has one of its own.
const without = ["engine", "durability"] as const;
const engine = { url: bouncer?.url, hasClock: true };
const keys = idempotencyStoreContract(() => idempotencyHarness(engine), { without });
const nonces = nonceStoreContract(() => nonceHarness(engine), { without });
testContract("idempotency store contract behind PgBouncer", keys, behindPgBouncer);
testContract("nonce store contract behind PgBouncer", nonces, behindPgBouncer);
