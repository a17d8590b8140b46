import { defineCases, idempotencyStoreContract, nonceStoreContract } from "@countersign/store-contract";
import { createMariadbStores, createTables } from "@countersign/example-custom-store";
import { afterAll, describe, expect, test } from "@jest/globals";
import { createPool } from "mysql2/promise";
import { reportMissing } from "@countersign/test-support/servers/server-binaries.mjs";
import { idempotencyHarness, nonceHarness } from "./harness.ts";
import { startMariadbServer, type MariadbServer } from "./server/mariadb-server.mjs";

// One of this file's own: the cases kill it.
const server = await startOwn();
const describeHere = server === undefined ? describe.skip : describe;
const setting = { url: server?.url ?? "", server };

const cases = [
  ...idempotencyStoreContract(() => idempotencyHarness(setting)),
  ...nonceStoreContract(() => nonceHarness(setting)),
].filter(({ name }) => name.includes("engine is"));

test("there are cases for a server that stops", () => {
  expect(cases).toHaveLength(6);
});

defineCases(cases, { describe: describeHere, test, title: "the contract on a MariaDB that is killed" });

describeHere("the stores on a MariaDB of their own", () => {
  const claim = { token: "a", fingerprint: "f", leaseMs: 60_000, recovery: "rerun" } as const;

  test("throw within five seconds when it is silent, and work again when it speaks", async () => {
    const harness = await idempotencyHarness(setting);
    const { store } = harness;
    await store.claim("key", claim);
    server?.pause();
    const before = performance.now();
    try {
      const calls = [
        store.claim("key", claim),
        store.claim("new", claim),
        store.read("key"),
        store.complete("key", "a"),
      ];
      const settled = await Promise.allSettled(calls.map(async (call) => call));
      expect(settled.map(({ status }) => status)).toEqual(calls.map(() => "rejected"));
      expect(performance.now() - before).toBeLessThan(5_000);
    } finally {
      server?.resume();
    }
    expect(await store.claim("key", claim)).toMatchObject({ status: expect.stringMatching(/acquired|done/) });
    await harness.close();
  });

  test("throw where a crash of the server would forget what it has answered", async () => {
    const pool = createPool({ uri: setting.url });
    await createTables(pool, "unsafe");
    await pool.query("SET GLOBAL innodb_flush_log_at_trx_commit = 2");
    const stores = createMariadbStores({ uri: setting.url, prefix: "unsafe" });
    try {
      await expect(stores.idempotency.claim("key", claim)).rejects.toThrow(
        /innodb_flush_log_at_trx_commit = 1/,
      );
    } finally {
      await pool.query("SET GLOBAL innodb_flush_log_at_trx_commit = 1");
      await stores.close();
      await pool.end();
    }
  });
});

describeHere("the stores on a table that was restored without its primary key", () => {
  const claim = { fingerprint: "f", leaseMs: 60_000, recovery: "rerun" } as const;

  test.each([
    ["keys", "id"],
    ["nonces", "digest"],
  ])("refuse every claim, and tell what mends it: %s", async (name, column) => {
    const pool = createPool({ uri: setting.url });
    const prefix = `lost_${name}`;
    await createTables(pool, prefix);
    await pool.query(`ALTER TABLE ${prefix}_${name} DROP PRIMARY KEY`);
    await createTables(pool, prefix);
    const stores = createMariadbStores({ uri: setting.url, prefix });
    try {
      const remedy = `ALTER TABLE \`${prefix}_${name}\` ADD PRIMARY KEY (${column})`;
      const attempts = ["a", "b"].map(async (token) => stores.idempotency.claim("key", { ...claim, token }));
      const refused = {
        status: "rejected",
        reason: { message: expect.stringContaining(`; run: ${remedy}`) },
      };
      expect(await Promise.allSettled(attempts)).toMatchObject([refused, refused]);
      const use = { scope: "s", nonce: "n", token: "a", retainMs: 60_000 };
      await expect(stores.nonces.claim(use)).rejects.toThrow(`; run: ${remedy}`);
      await pool.query(remedy);
      expect(await stores.idempotency.claim("key", { ...claim, token: "a" })).toMatchObject({
        status: "acquired",
      });
      expect(await stores.nonces.claim(use)).toBe("fresh");
    } finally {
      await stores.close();
      await pool.end();
    }
  });
});

async function startOwn(): Promise<MariadbServer | undefined> {
  const started = await startMariadbServer();
  if (started === undefined) {
    reportMissing("MariaDB", "tests that kill a server of their own are skipped. Install mariadb-server.");
    return undefined;
  }
  afterAll(() => started.close());
  return started;
}
