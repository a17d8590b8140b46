// The stores and the test of the page "Write a store", run as its reader runs them.
import { execFile } from "node:child_process";
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { eventually } from "@countersign/test-support/runs/eventually.ts";
import { describeOnPostgres, isolatedName, postgresUrl } from "@countersign/test-support/servers/engines.ts";
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { Pool } from "pg";
import { createMyStore, createTables } from "../dist/guide/my-store.js";
import { testMyTransactions } from "../dist/reference/my-transactions.js";

// What the shown stores leave out is no case here.
const runner = { describe, test: Object.assign(test.bind(undefined), { skip: () => {} }) };
testMyTransactions(runner);

describeOnPostgres("the stores of the page", () => {
  const database = isolatedName("mine");
  const admin = new Pool({ connectionString: postgresUrl });
  const url = new URL(postgresUrl ?? "postgres://127.0.0.1");
  url.pathname = database;
  let pool: Pool;

  beforeAll(async () => {
    await admin.query(`CREATE DATABASE ${database}`);
    pool = new Pool({ connectionString: url.href, application_name: database });
    await pool.query(createTables);
  });

  afterAll(async () => {
    await pool.end();
    await admin.query(`DROP DATABASE ${database}`);
    await admin.end();
  });

  test("pass their test, by both clocks", async () => {
    const file = fileURLToPath(new URL("../dist/guide/my-store-test.js", import.meta.url));
    const options = { env: { ...process.env, DATABASE_URL: url.href } };
    const { stdout } = await promisify(execFile)(
      process.execPath,
      ["--test", "--test-reporter=tap", file],
      options,
    );
    const counted = [...stdout.matchAll(/^# (pass|fail|skipped) (\d+)$/gm)].map(([, what, count]) => [
      what,
      Number(count),
    ]);
    const page = readFileSync(new URL("../../../site/pages/guide/write-a-store.md", import.meta.url), "utf8");
    const told = /The (\d+) cases take .*; (\d+) others are skipped/.exec(page) ?? [];
    expect(Object.fromEntries(counted)).toEqual({ pass: Number(told[1]), fail: 0, skipped: Number(told[2]) });
  }, 600_000);

  test("decide a claim again that waited for another step's commit", async () => {
    const store = createMyStore(pool);
    const claim = { token: "a", fingerprint: "f", leaseMs: 60_000, recovery: "rerun" } as const;
    await store.claim("paid", claim);
    await pool.query("UPDATE my_keys SET until_at = now(), version = version + 1 WHERE key = 'paid'");
    const client = await pool.connect();
    await client.query("BEGIN");
    await client.query(
      "UPDATE my_keys SET state = 'held', reason = 'asked', version = version + 1 WHERE key = 'paid'",
    );
    // Asked outside of the transaction: in one, what was read first is read again until its end.
    const blocked = "SELECT FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND application_name = $1";
    const waiting = store.claim("paid", { ...claim, token: "b" });
    await eventually(async () => (await pool.query(blocked, [database])).rowCount === 1);
    await client.query("COMMIT");
    client.release();
    expect(await waiting).toMatchObject({ status: "held", reason: "asked" });
  });
});
