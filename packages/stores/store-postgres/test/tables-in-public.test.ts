import { fromPg } from "@countersign/databases";
import {
  createPostgresAnswers,
  createPostgresStores,
  migratePostgres,
  migratePostgresAnswers,
  postgresAnswersMigration,
  postgresMigration,
  postgresMovesFromPublic,
} from "@countersign/store-postgres";
import { afterTest } from "@countersign/test-support/runs/after-test.ts";
import { describeOnPostgres, isolatedName, postgresUrl } from "@countersign/test-support/servers/engines.ts";
import { expect, test } from "@jest/globals";
import { Client, type Pool } from "pg";
import { connectPool, createStores } from "./connections.ts";
import { claimOf, keyOf, payIn } from "./payouts.ts";

const claim = { token: "a", fingerprint: "f", leaseMs: 60_000, recovery: "hold" } as const;
const refusal =
  /tables of this prefix stand in the schema public, .* schema: "public" .* ALTER TABLE .* SET SCHEMA "countersign"; .* countersign migrate/;

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
    elsewhere: connectPool({ connectionString: url.href, options: "-c search_path=pg_temp" }),
  };
}

/** The same, with tables in `public` and a key `k` that was paid. */
async function databaseOfBefore(table?: string) {
  const database = await newDatabase();
  const { pool } = database;
  await migratePostgres(pool, { schema: "public", table });
  await migratePostgresAnswers(pool, { schema: "public", table });
  const { idempotency } = createStores(pool, { schema: "public", table });
  await idempotency.claim("k", claim);
  await idempotency.complete("k", "a");
  return database;
}

function transactionsOn(pool: Pool) {
  const stores = createPostgresStores({ database: fromPg(pool), pruneIntervalMs: 0 });
  afterTest(() => stores.close());
  return stores.transactions;
}

async function schemasOf(pool: Pool, table = "countersign"): Promise<unknown[]> {
  const query =
    "SELECT DISTINCT table_schema AS name FROM information_schema.tables WHERE table_name LIKE $1";
  return (await pool.query<{ name: string }>(query, [`${table}\\_%`])).rows.map(({ name }) => name);
}

/** Everything that begins without a schema. */
const beginnings: readonly [string, (pool: Pool) => Promise<unknown>][] = [
  ["migratePostgres()", (pool) => migratePostgres(pool)],
  ["migratePostgresAnswers()", (pool) => migratePostgresAnswers(pool)],
  ["postgresMigration()", (pool) => pool.query(postgresMigration())],
  ["postgresAnswersMigration()", (pool) => pool.query(postgresAnswersMigration())],
  ["ready()", (pool) => createStores(pool, {}).ready()],
  ["a first claim", (pool) => createStores(pool, {}).idempotency.claim("k", { ...claim, token: "b" })],
  ["a first transaction", (pool) => payIn(transactionsOn(pool), claimOf([keyOf("k")]), () => pool.query(""))],
  [
    "a first answer",
    async (pool) => {
      const answers = createPostgresAnswers({ pool, pruneIntervalMs: 0 });
      afterTest(() => answers.close());
      await answers.keep("a", Buffer.from("{}"));
    },
  ],
];

describeOnPostgres("without a schema", () => {
  test("the tables are in countersign, and nothing is in public", async () => {
    const { pool } = await newDatabase();
    // In either order.
    await migratePostgresAnswers(pool);
    await migratePostgres(pool);
    await migratePostgres(pool);
    expect(await schemasOf(pool)).toEqual(["countersign"]);
    expect((await createStores(pool, {}).idempotency.claim("k", claim)).status).toBe("acquired");
    const { keys } = await payIn(transactionsOn(pool), claimOf([keyOf("l")]), () => pool.query(""));
    expect(keys).toEqual([{ status: "begun" }]);
  });

  test("tables in public are refused by all that begins, also where nobody may look into it", async () => {
    const { pool, poolOfRole, elsewhere } = await databaseOfBefore();
    await pool.query("REVOKE ALL ON SCHEMA public FROM PUBLIC");
    for (const its of [pool, poolOfRole, elsewhere]) {
      for (const [name, begin] of beginnings) {
        const error: unknown = await begin(its).then(
          () => name,
          (thrown: unknown) => thrown,
        );
        expect(error).toMatchObject({ message: expect.stringMatching(refusal) });
      }
    }
    expect(await schemasOf(pool)).toEqual(["public"]);
  });

  test.each(["_idempotency", "_nonces", "_answers", "_schema"])(
    "one table %s in public is enough",
    async (suffix) => {
      const { pool } = await newDatabase();
      await migratePostgres(pool);
      await pool.query(`CREATE TABLE public.countersign${suffix} (key text)`);
      await expect(migratePostgres(pool)).rejects.toThrow(refusal);
      await expect(createStores(pool, {}).ready()).rejects.toThrow(refusal);
    },
  );

  test('schema: "public" goes on with them', async () => {
    const { pool } = await databaseOfBefore();
    await migratePostgres(pool, { schema: "public" });
    expect(await postgresMovesFromPublic(pool, { schema: "public" })).toBeUndefined();
    const { idempotency } = createStores(pool, { schema: "public" });
    expect((await idempotency.claim("k", { ...claim, token: "b" })).status).toBe("done");
  });

  test('schema: "countersign" is respected beside them', async () => {
    const { pool } = await databaseOfBefore();
    await migratePostgres(pool, { schema: "countersign" });
    const { idempotency } = createStores(pool, { schema: "countersign" });
    expect((await idempotency.claim("k", claim)).status).toBe("acquired");
  });

  test("tables of another prefix in public are no reason", async () => {
    const { pool } = await databaseOfBefore("other");
    await migratePostgres(pool);
    await createStores(pool, {}).ready();
    await expect(migratePostgres(pool, { table: "other" })).rejects.toThrow(refusal);
    await expect(createStores(pool, { table: "other" }).ready()).rejects.toThrow(refusal);
  });

  test.each<[string, string | undefined, string]>([
    ["as the message says", undefined, "countersign"],
    ["as the message says, whatever the prefix", undefined, `o'clock %I "x"`],
    [
      "with the function, which still names them where they were",
      "ALTER FUNCTION public.countersign_begin(text) SET SCHEMA countersign",
      "countersign",
    ],
  ])("tables that were moved %s go on", async (_case, withFunction, table) => {
    const { pool } = await databaseOfBefore(table);
    const moves = await postgresMovesFromPublic(pool, { table });
    await expect(migratePostgres(pool, { table })).rejects.toThrow(moves);
    await pool.query((moves ?? "").replace(/DROP FUNCTION.*/s, (drop) => withFunction ?? drop));
    expect(await postgresMovesFromPublic(pool, { table })).toBeUndefined();
    expect(await schemasOf(pool, table)).toEqual(["countersign"]);
    const stores = createPostgresStores({ database: fromPg(pool), table, pruneIntervalMs: 0 });
    afterTest(() => stores.close());
    const pay = (key: string) => payIn(stores.transactions, claimOf([keyOf(key)]), () => pool.query(""));
    await expect(pay("l")).rejects.toThrow(/no function for transactions; .* countersign migrate/);
    await migratePostgres(pool, { table });
    expect((await pay("k")).keys).toMatchObject([{ status: "done" }]);
    expect((await pay("l")).keys).toEqual([{ status: "begun" }]);
    expect((await stores.idempotency.read("l"))?.state).toBe("done");
  });

  test("a role that may not create the schema is told both remedies, and the first one works", async () => {
    const { pool, poolOfRole, role } = await newDatabase();
    for (const migrate of [migratePostgres, migratePostgresAnswers]) {
      const error: unknown = await migrate(poolOfRole).catch((thrown: unknown) => thrown);
      const remedy = `CREATE SCHEMA "countersign" AUTHORIZATION "${role}"`;
      expect(error).toMatchObject({
        message: expect.stringContaining(`run ${remedy}, or give schema: "public"`),
      });
    }
    await pool.query(`CREATE SCHEMA "countersign" AUTHORIZATION "${role}"`);
    await migratePostgres(poolOfRole);
    expect((await createStores(poolOfRole, {}).idempotency.claim("k", claim)).status).toBe("acquired");
  });
});
