import { subscribe, unsubscribe } from "node:diagnostics_channel";
import { createStores, migrate } from "@countersign/store-sql";
import { afterEach, beforeEach, expect, jest, test } from "@jest/globals";
import type { Pool } from "pg";
import { describeOnPostgres } from "@countersign/test-support/servers/engines.ts";
import { afterTest, pause } from "@countersign/test-support/runs/after-test.ts";
import {
  connectClient,
  connectPool,
  createSchema,
  openStores,
  dropAfterTest,
  newStores,
} from "./connections.ts";
import { eventually } from "@countersign/test-support/runs/eventually.ts";

async function rowCount(pool: Pool, schema: string, table = "idempotency"): Promise<number | null> {
  // The empty key is none: its row keeps the fence of what was pruned.
  const rows = table === "idempotency" ? "WHERE key <> ''" : "";
  return (await pool.query(`SELECT FROM ${schema}.countersign_${table} ${rows}`)).rowCount;
}

async function addDone(pool: Pool, schema: string, count: number): Promise<void> {
  await pool.query(
    `INSERT INTO ${schema}.countersign_idempotency SELECT 'old-' || n, 'done', 'a', 0, 'f', '', 'hold', 'epoch', 1 FROM generate_series(1, ${count}) AS n`,
  );
}

describeOnPostgres("prune()", () => {
  test("removes all that has expired, batch by batch, and nothing else", async () => {
    const { pool, schema, nonces: right } = await newStores();
    await addDone(pool, schema, 1200);
    await pool.query(
      `INSERT INTO ${schema}.countersign_nonces SELECT sha256(n::text::bytea), 'a', 'epoch' FROM generate_series(1, 1001) AS n`,
    );
    await right.claim({ scope: "s", nonce: "n", token: "a", retainMs: 60_000 });
    const statements: string[] = [];
    const counting = {
      query: (text: string, values?: unknown[]) => {
        statements.push(text);
        return pool.query(text, values);
      },
    };
    const { idempotency, nonces } = openStores(counting, { schema });
    await idempotency.read("k");
    statements.length = 0;
    expect([await idempotency.prune(), await nonces.prune()]).toEqual([1200, 1001]);
    expect(statements).toHaveLength(6);
    expect([await idempotency.prune(), await nonces.prune()]).toEqual([0, 0]);
    expect(await rowCount(pool, schema, "nonces")).toBe(1);
  });

  test("removes from partitioned tables no live row that has the address of an expired one", async () => {
    const { pool, schema } = await newStores();
    const partitioned = `${schema}_parts`;
    dropAfterTest(pool, partitioned);
    await pool.query(`CREATE SCHEMA ${partitioned}`);
    for (const [table, column] of [
      ["countersign_idempotency", "key"],
      ["countersign_nonces", "digest"],
    ]) {
      const name = `${partitioned}.${table}`;
      await pool.query(
        `CREATE TABLE ${name} (LIKE ${schema}.${table} INCLUDING DEFAULTS INCLUDING CONSTRAINTS, PRIMARY KEY (${column})) PARTITION BY HASH (${column});
         CREATE TABLE ${name}_0 PARTITION OF ${name} FOR VALUES WITH (MODULUS 2, REMAINDER 0);
         CREATE TABLE ${name}_1 PARTITION OF ${name} FOR VALUES WITH (MODULUS 2, REMAINDER 1)`,
      );
    }
    await migrate(pool, { schema: partitioned });
    const { idempotency, nonces } = openStores(pool, { schema: partitioned });
    const until = "CASE WHEN n % 3 = 0 THEN to_timestamp(0) ELSE now() + interval '1 day' END";
    await pool.query(
      `INSERT INTO ${partitioned}.countersign_idempotency
       SELECT 'k' || n, 'done', 'a', n, 'f', '', 'hold', ${until}, 1 FROM generate_series(1, 99) AS n`,
    );
    await pool.query(
      `INSERT INTO ${partitioned}.countersign_nonces SELECT sha256(n::text::bytea), 'a', ${until} FROM generate_series(1, 99) AS n`,
    );
    expect([await idempotency.prune(), await nonces.prune()]).toEqual([33, 33]);
    expect([await rowCount(pool, partitioned), await rowCount(pool, partitioned, "nonces")]).toEqual([
      66, 66,
    ]);
  });

  test("passes over rows that others have locked, and waits for nobody", async () => {
    const { idempotency, nonces, pool, schema } = await newStores({ lockTimeoutMs: 60_000 });
    await addDone(pool, schema, 10);
    await pool.query(
      `INSERT INTO ${schema}.countersign_nonces SELECT sha256(n::text::bytea), 'a', 'epoch' FROM generate_series(1, 10) AS n`,
    );
    const client = await connectClient(pool);
    await client.query("BEGIN");
    await client.query(`SELECT FROM ${schema}.countersign_idempotency ORDER BY key LIMIT 3 FOR UPDATE`);
    await client.query(`SELECT FROM ${schema}.countersign_nonces LIMIT 4 FOR UPDATE`);
    expect(await idempotency.prune()).toBe(7);
    expect(await nonces.prune()).toBe(6);
    await client.query("COMMIT");
    expect(await idempotency.prune()).toBe(3);
    expect(await nonces.prune()).toBe(4);
  });
});

describeOnPostgres("pruning in the background", () => {
  beforeEach(() => {
    jest.spyOn(Math, "random").mockReturnValue(0.5);
  });

  afterEach(() => {
    jest.restoreAllMocks();
  });

  test("removes keys and nonces a batch at a time, and ends with close", async () => {
    const pool = connectPool();
    const schema = await createSchema(pool);
    await addDone(pool, schema, 1100);
    await pool.query(`INSERT INTO ${schema}.countersign_nonces VALUES ('n', 'a', 'epoch')`);
    const stores = createStores({ pool, schema, pruneIntervalMs: 40 });
    afterTest(() => stores.close());
    while ((await rowCount(pool, schema)) !== 0 || (await rowCount(pool, schema, "nonces")) !== 0)
      await pause(10);
    stores.close();
    // What was under way at that moment may still remove something.
    await eventually(() => pool.idleCount >= pool.totalCount);
    await addDone(pool, schema, 1);
    await pause(150);
    expect(await rowCount(pool, schema)).toBe(1);
  });

  test("reports a failure on the notice channel and goes on", async () => {
    const pool = connectPool();
    const schema = await createSchema(pool);
    await pool.query(`ALTER TABLE ${schema}.countersign_nonces RENAME TO gone`);
    const notices: unknown[] = [];
    const listener = (notice: unknown) => notices.push(notice);
    subscribe("countersign:notice", listener);
    afterTest(() => unsubscribe("countersign:notice", listener));
    const stores = createStores({ pool, schema, pruneIntervalMs: 30 });
    afterTest(() => stores.close());
    await eventually(() => notices.length !== 0);
    expect(notices[0]).toMatchObject({
      guard: "createStores",
      code: "prune-failed",
      error: { message: expect.stringMatching(/countersign migrate/) },
    });
    await pool.query(`ALTER TABLE ${schema}.gone RENAME TO countersign_nonces`);
    await pool.query(`INSERT INTO ${schema}.countersign_nonces VALUES ('n', 'a', 'epoch')`);
    await eventually(async () => (await rowCount(pool, schema, "nonces")) === 0);
  });
});
