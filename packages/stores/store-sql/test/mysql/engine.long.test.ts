import {
  answerStoreContract,
  idempotencyStoreContract,
  nonceStoreContract,
} from "@countersign/store-contract";
import { testCrashes } from "@countersign/test-support/runs/contract.ts";
import { afterAll, afterEach, describe, expect, test } from "@jest/globals";
import { mysqlEngine, mysqlUrl } from "@countersign/test-support/servers/engines.ts";
import { type MariadbServer, startMariadbServer } from "@countersign/test-support/servers/mariadb-server.mjs";
import { startMysqlServer } from "@countersign/test-support/servers/mysql-server.mjs";
import { reportMissing } from "@countersign/test-support/servers/server-binaries.mjs";
import { idsOf, newStores } from "./connections.ts";
import { answerHarness, idempotencyHarness, nonceHarness } from "./harness.ts";
import { newKey, payOne } from "./transactions.ts";

// One of this file's own: the cases kill it.
const server = mysqlUrl === undefined ? undefined : await startOwn();
const onOwnServer = server === undefined ? describe.skip : describe;

testCrashes(
  {
    keys: idempotencyStoreContract(() => idempotencyHarness({ server })),
    nonces: nonceStoreContract(() => nonceHarness({ server })),
    answers: answerStoreContract(() => answerHarness({ server })),
  },
  onOwnServer,
);

onOwnServer("a server that crashes", () => {
  test("has every payment with its key that was answered, and none of a transaction that was open", async () => {
    const { transactions, idempotency, pool, table } = await newStores({}, { uri: server?.url ?? "" });
    const insert = `INSERT INTO ${table}_payouts VALUES (?)`;
    await payOne(transactions, newKey("paid"), (tx) => tx.query(insert, ["paid"]));
    const open = payOne(transactions, newKey("open"), async (tx) => {
      await tx.query(insert, ["open"]);
      await server?.kill();
      await tx.query("SELECT 1");
    });
    expect(transactions.faultOf(await open.catch((error: unknown) => error))).toBe("unavailable");
    const down = payOne(transactions, newKey("down"));
    expect(transactions.faultOf(await down.catch((error: unknown) => error))).toBe("unavailable");
    await server?.start();
    expect(await idempotency.read("paid")).toMatchObject({ state: "done" });
    expect(await idempotency.read("open")).toBeUndefined();
    expect(await idsOf(pool, table)).toEqual(["paid"]);
    expect(await payOne(transactions, newKey("open"), (tx) => tx.query(insert, ["open"]))).toBe("begun");
  });
});

onOwnServer("a server in another mode", () => {
  const environment = process.env["NODE_ENV"];

  afterEach(() => {
    process.env["NODE_ENV"] = environment;
  });

  test.each([
    ["innodb_flush_log_at_trx_commit", "2", "1", /innodb_flush_log_at_trx_commit = 1/],
    ["read_only", "ON", "OFF", /read-only/],
  ])("is refused in production by the first step: %s", async (variable, bad, good, message) => {
    const { idempotency, pool } = await newStores({}, { uri: server?.url ?? "" });
    process.env["NODE_ENV"] = "production";
    const claim = { token: "a", fingerprint: "f", leaseMs: 60_000, recovery: "rerun" } as const;
    await pool.query(`SET GLOBAL ${variable} = ${bad}`);
    try {
      await expect(idempotency.claim("k", claim)).rejects.toThrow(message);
    } finally {
      await pool.query(`SET GLOBAL ${variable} = ${good}`);
    }
    expect(await idempotency.claim("k", claim)).toMatchObject({ status: "acquired" });
  });
});

async function startOwn(): Promise<MariadbServer | undefined> {
  const started = await (mysqlEngine === "mysql" ? startMysqlServer() : startMariadbServer());
  if (started === undefined) {
    reportMissing(
      "MariaDB",
      "tests that kill a server of their own are skipped. Install mariadb-server-core.",
    );
    return undefined;
  }
  afterAll(() => started.close());
  return started;
}
