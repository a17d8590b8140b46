// The code of the page about stores of one's own, run.
import { eventually } from "@countersign/test-support/runs/eventually.ts";
import { describeOnPostgres, isolatedName, postgresUrl } from "@countersign/test-support/servers/engines.ts";
import { defineCases, idempotencyStoreContract } from "@countersign/store-contract";
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { Pool } from "pg";
import { createMyStore, createTable } from "../dist/reference/my-store.js";
import { testMyTransactions } from "../dist/reference/my-transactions.js";

// What the shown stores leave out is no case here.
const runner = { describe, test: Object.assign(test.bind(undefined), { skip: () => {} }) };
testMyTransactions(runner);

describeOnPostgres("createMyStore() on PostgreSQL", () => {
  const schema = isolatedName("mine");
  const poolOf = (): Pool =>
    new Pool({
      connectionString: postgresUrl,
      options: `-c search_path=${schema}`,
      application_name: schema,
      query_timeout: 30_000,
    });
  const pool = poolOf();
  const store = createMyStore(pool);

  beforeAll(async () => {
    await pool.query(`CREATE SCHEMA ${schema}`);
    await pool.query(createTable);
  });

  afterAll(async () => {
    await pool.query(`DROP SCHEMA ${schema} CASCADE`);
    await pool.end();
  });

  const makeStore = async () => {
    await pool.query("TRUNCATE my_keys");
    const pools: Pool[] = [];
    const another = () => {
      const own = poolOf();
      pools.push(own);
      return createMyStore(own);
    };
    return {
      store: createMyStore(pool),
      another,
      close: async () => void (await Promise.all(pools.map((each) => each.end()))),
    };
  };
  const without = ["clock", "fill", "engine", "durability", "transaction", "swallow", "waiting"] as const;
  defineCases(idempotencyStoreContract(makeStore, { without, histories: 20 }), {
    title: "keeps the contract",
    ...runner,
  });

  test("a claim that waited for another step's commit is decided again", async () => {
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
    await eventually(async () => (await pool.query(blocked, [schema])).rowCount === 1);
    await client.query("COMMIT");
    client.release();
    expect(await waiting).toMatchObject({ status: "held", reason: "asked" });
  });
});
