import { fromPg } from "@countersign/store-sql/pg";
import { createStores, migrate } from "@countersign/store-sql";
import { afterTest } from "@countersign/test-support/runs/after-test.ts";
import { describeOnPostgres, isolatedName, postgresUrl } from "@countersign/test-support/servers/engines.ts";
import { expect, test } from "@jest/globals";
import { Client, type Pool } from "pg";
import { connectPool, openStores } from "./connections.ts";
import { claimOf, keyOf, payIn } from "./payouts.ts";

const claim = { token: "a", fingerprint: "f", leaseMs: 60_000, recovery: "hold" } as const;

/** A database of its own, so that a test may use the default schema, and a role without rights. */
async function newDatabase() {
  const name = isolatedName("public");
  const administer = async (sql: string): Promise<void> => {
    const client = new Client({ connectionString: postgresUrl });
    await client.connect();
    await client.query(sql);
    await client.end();
  };
  const role = `${name}-role`;
  await administer(`CREATE ROLE "${role}" LOGIN`);
  afterTest(() => administer(`DROP ROLE "${role}"`));
  await administer(`CREATE DATABASE ${name}`);
  // Before the role, which may own something in it.
  afterTest(() => administer(`DROP DATABASE ${name} WITH (FORCE)`));
  const url = new URL(postgresUrl ?? "");
  url.pathname = `/${name}`;
  const asRole = Object.assign(new URL(url), { username: role });
  return {
    role,
    pool: connectPool({ connectionString: url.href }),
    poolOfRole: connectPool({ connectionString: asRole.href }),
  };
}

function storesOn(pool: Pool) {
  const stores = createStores({ database: fromPg(pool), pruneIntervalMs: 0 });
  afterTest(() => stores.close());
  const pay = (key: string) => payIn(stores.transactions, claimOf([keyOf(key)]), () => pool.query(""));
  return { ...stores, pay };
}

async function schemasOf(pool: Pool): Promise<unknown[]> {
  const query =
    "SELECT DISTINCT table_schema AS name FROM information_schema.tables WHERE table_name LIKE 'countersign\\_%'";
  return (await pool.query<{ name: string }>(query)).rows.map(({ name }) => name);
}

describeOnPostgres("without a schema", () => {
  test("the tables are in countersign, and nothing is in public", async () => {
    const { pool } = await newDatabase();
    // In either order.
    await migrate(pool);
    await migrate(pool);
    expect(await schemasOf(pool)).toEqual(["countersign"]);
    const { idempotency, pay } = storesOn(pool);
    expect((await idempotency.claim("k", claim)).status).toBe("acquired");
    expect((await pay("l")).keys).toEqual([{ status: "begun" }]);
  });

  test("tables that were moved there from another schema go on", async () => {
    const { pool } = await newDatabase();
    await migrate(pool, { schema: "public" });
    const before = openStores(pool, { schema: "public" });
    await before.idempotency.claim("k", claim);
    await before.idempotency.complete("k", "a");
    await pool.query(`CREATE SCHEMA countersign; DO $$ DECLARE moved record; BEGIN
      FOR moved IN SELECT oid::regclass AS name FROM pg_class WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace LOOP
        EXECUTE format('ALTER TABLE %s SET SCHEMA countersign', moved.name);
      END LOOP;
    END $$`);
    expect(await schemasOf(pool)).toEqual(["countersign"]);
    const { idempotency, work, transactions, pay } = storesOn(pool);
    expect((await pay("k")).keys).toMatchObject([{ status: "done" }]);
    expect((await pay("l")).keys).toEqual([{ status: "begun" }]);
    expect((await idempotency.read("l"))?.state).toBe("done");
    const added = await transactions.run((tx) => work.add(tx, "q", [{ id: "1", body: "" }]));
    expect(added).toEqual([{ status: "added" }]);
  });

  test("a role that may not create the schema is told both remedies, and the first one works", async () => {
    const { pool, poolOfRole, role } = await newDatabase();
    const error: unknown = await migrate(poolOfRole).catch((thrown: unknown) => thrown);
    const remedy = `CREATE SCHEMA "countersign" AUTHORIZATION "${role}"`;
    expect(error).toMatchObject({
      message: expect.stringContaining(`run ${remedy}, or give schema: "public"`),
    });
    await pool.query(`CREATE SCHEMA "countersign" AUTHORIZATION "${role}"`);
    await migrate(poolOfRole);
    expect((await openStores(poolOfRole, {}).idempotency.claim("k", claim)).status).toBe("acquired");
  });
});
