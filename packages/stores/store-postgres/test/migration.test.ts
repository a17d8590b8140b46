import { readFileSync } from "node:fs";
import {
  createPostgresStores,
  migratePostgres,
  migratePostgresAnswers,
  postgresMigration,
  postgresSchemaVersion,
} from "@countersign/store-postgres";
import { fromPg } from "@countersign/databases";
import { describe, expect, test } from "@jest/globals";
import type { Pool } from "pg";
import { describeOnPostgres, isolatedName, postgresUrl } from "@countersign/test-support/servers/engines.ts";
import { afterTest } from "@countersign/test-support/runs/after-test.ts";
import {
  connectClient,
  connectPool,
  createSchema,
  createStores,
  dropAfterTest,
  newStores,
  untilBlocked,
} from "./connections.ts";

const claim = { token: "a", fingerprint: "f", leaseMs: 60_000, recovery: "hold" } as const;
const use = { scope: "s", nonce: "n", token: "a", retainMs: 60_000 };

/** What an earlier release ran, for another schema. */
function sqlOfRelease(version: number, schema: string): string {
  const file = new URL(`../migrations/00${version}-countersign.sql`, import.meta.url);
  const sql = readFileSync(file, "utf8").replaceAll(/(["'])countersign\1/g, `$1${schema}$1`);
  // Tables of others on this server: with another schema none are looked for.
  return sql.replace("n.nspname = 'public'", "false");
}

describeOnPostgres("migratePostgres()", () => {
  test("creates schema and tables, and can be repeated without touching what is there", async () => {
    const { idempotency, pool, schema } = await newStores();
    await idempotency.claim("k", claim);
    await migratePostgres(pool, { schema });
    expect(await idempotency.read("k")).toMatchObject({ state: "run" });
    const { rows } = await pool.query(`SELECT version FROM ${schema}.countersign_schema`);
    expect(rows).toEqual([{ version: postgresSchemaVersion }]);
    const tables = `SELECT relname, relpersistence FROM pg_class WHERE relnamespace = '${schema}'::regnamespace AND relkind IN ('r', 'S') ORDER BY 1`;
    expect((await pool.query(tables)).rows).toEqual([
      { relname: "countersign_idempotency", relpersistence: "p" },
      { relname: "countersign_lanes", relpersistence: "p" },
      { relname: "countersign_newest", relpersistence: "p" },
      { relname: "countersign_nonces", relpersistence: "p" },
      { relname: "countersign_queues", relpersistence: "p" },
      { relname: "countersign_schema", relpersistence: "p" },
      { relname: "countersign_tasks", relpersistence: "p" },
    ]);
  });

  test.each(["read committed", "serializable"])(
    "may run many times at once, on sessions that are %s",
    async (level) => {
      const pool = connectPool({
        options: `-c default_transaction_isolation=${level.replace(" ", String.raw`\ `)}`,
      });
      const schema = isolatedName("pg");
      dropAfterTest(pool, schema);
      // Each of the three makes the schema, under a lock of its own.
      const migrations = Array.from({ length: 4 }, () => [
        migratePostgres(pool, { schema }),
        migratePostgresAnswers(pool, { schema }),
        migratePostgres(pool, { schema, table: "other" }),
      ]);
      await Promise.all(migrations.flat());
      expect((await pool.query(`SELECT version FROM ${schema}.countersign_schema`)).rowCount).toBe(1);
      await createStores(pool, { schema }).ready();
    },
  );

  test("locks nothing when there is nothing to do: payments in progress neither wait nor keep it waiting", async () => {
    const { idempotency, pool, schema } = await newStores();
    await idempotency.claim("k", claim);
    const client = await connectClient(pool);
    await client.query("BEGIN");
    await idempotency.completeIn(client, "k", "a");
    await client.query(`LOCK TABLE ${schema}.countersign_nonces IN SHARE MODE`);
    const impatient = connectPool({ options: "-c lock_timeout=200" });
    await migratePostgres(impatient, { schema });
    await client.query("COMMIT");
  });

  test("makes a table again that was dropped, and leaves the others", async () => {
    const { idempotency, nonces, pool, schema } = await newStores();
    await idempotency.claim("k", claim);
    await pool.query(`DROP TABLE ${schema}.countersign_nonces`);
    await migratePostgres(pool, { schema });
    expect(await nonces.claim(use)).toBe("fresh");
    expect(await idempotency.read("k")).toMatchObject({ state: "run" });
  });

  describe("on tables of version 1", () => {
    const drawn = "SELECT nextval('%.countersign_fences'::regclass)";

    async function oldTables() {
      const pool = connectPool();
      const schema = isolatedName("pg");
      dropAfterTest(pool, schema);
      await pool.query(sqlOfRelease(1, schema));
      await pool.query(
        `INSERT INTO ${schema}.countersign_idempotency
         SELECT 'k' || n, CASE WHEN n = 1 THEN 'held' ELSE 'free' END, 'a', nextval('${schema}.countersign_fences'), 'f', '', now() + interval '1 hour'
         FROM generate_series(1, 3) AS n`,
      );
      return { pool, schema };
    }

    test("keeps the keys, drops the sequence, and fences grow on", async () => {
      const { pool, schema } = await oldTables();
      const { idempotency } = createStores(pool, { schema });
      await expect(idempotency.claim("k2", claim)).rejects.toThrow(
        /schema version 1, .* countersign migrate/,
      );
      await migratePostgres(pool, { schema });
      await migratePostgres(pool, { schema });
      const { rows } = await pool.query(`SELECT version FROM ${schema}.countersign_schema`);
      expect(rows).toEqual([{ version: postgresSchemaVersion }]);
      expect(await idempotency.read("k1")).toMatchObject({ state: "held", fence: 1 });
      const claimed = await idempotency.claim("k2", claim);
      expect(claimed).toEqual({ status: "acquired", fence: expect.any(Number) });
      expect(claimed.status === "acquired" && claimed.fence).toBeGreaterThan(1e15);
    });

    test("leaves a process of the release before without fences: its claims fail", async () => {
      const { pool, schema } = await oldTables();
      await migratePostgres(pool, { schema });
      await expect(pool.query(drawn.replace("%", schema))).rejects.toMatchObject({ code: "42P01" });
      await expect(pool.query(sqlOfRelease(1, schema))).rejects.toThrow(/schema version 5, newer than 1/);
    });

    test("waits until nobody draws a fence of version 1 any more", async () => {
      const { pool, schema } = await oldTables();
      const client = await connectClient(pool);
      await client.query("BEGIN");
      await client.query(drawn.replace("%", schema));
      const migrated = migratePostgres(pool, { schema });
      await untilBlocked(pool, schema);
      expect((await pool.query(`SELECT version FROM ${schema}.countersign_schema`)).rows).toEqual([
        { version: 1 },
      ]);
      await client.query("COMMIT");
      await migrated;
      await createStores(pool, { schema }).ready();
    });
  });

  describe("on tables of version 2", () => {
    const decision = { by: "anna", note: "TICKET-1" };

    async function oldTables() {
      const pool = connectPool();
      const schema = isolatedName("pg");
      dropAfterTest(pool, schema);
      await pool.query(sqlOfRelease(2, schema));
      const name = `${schema}.countersign_idempotency`;
      await pool.query(
        `INSERT INTO ${name} SELECT state || '-key', state, 'a', 7, 'f', 'why', now() + interval '1 hour'
         FROM unnest(ARRAY['held', 'done', 'free']) AS state`,
      );
      return { pool, schema, name };
    }

    test("keeps the keys, which then are decided about", async () => {
      const { pool, schema } = await oldTables();
      const { idempotency } = createStores(pool, { schema });
      const early = idempotency.resolve("held-key", "released", { fence: 7 });
      await expect(early).rejects.toThrow(/schema version 2, .* countersign migrate/);
      await Promise.all([migratePostgres(pool, { schema }), migratePostgres(pool, { schema })]);
      expect(await idempotency.read("held-key")).toEqual({
        state: "held",
        token: "a",
        fence: 7,
        fingerprint: "f",
        reason: "why",
      });
      expect(await idempotency.reopen("done-key", { fence: 7 })).toBe("not-decided");
      expect(await idempotency.reopen("free-key", { fence: 7 })).toBe("not-decided");
      expect(await idempotency.resolve("held-key", "released", { fence: 7, ...decision })).toBe("ok");
      expect(await idempotency.readReleased("held-key")).toMatchObject({
        decision: { ...decision, outcome: "released", fence: 7, reason: "why" },
      });
    });

    test("writes no row of the table anew", async () => {
      const { pool, schema, name } = await oldTables();
      const pages = async () =>
        (await pool.query(`SELECT pg_relation_filenode('${name}') AS node`)).rows as unknown;
      const before = await pages();
      await migratePostgres(pool, { schema });
      expect(await pages()).toEqual(before);
    });

    test("goes on serving a process of the release before, whose steps leave a decision as it is", async () => {
      const { pool, schema, name } = await oldTables();
      await migratePostgres(pool, { schema });
      const { idempotency } = createStores(pool, { schema });
      await idempotency.resolve("held-key", "released", { fence: 7, ...decision });
      const kept = (await idempotency.readReleased("held-key"))?.decision;
      // As its claims write.
      await pool.query(
        `INSERT INTO ${name} (key, state, token, fence, fingerprint, reason, until_at)
         VALUES ('new-key', 'run', 'b', 8, 'f', '', now() + interval '1 hour')`,
      );
      await pool.query(
        `UPDATE ${name} SET state = 'run', token = 'b', fence = 8, fingerprint = 'f', reason = '',
           until_at = now() + interval '1 hour' WHERE key = 'held-key'`,
      );
      expect(await idempotency.complete("new-key", "b")).toBe("ok");
      expect(await idempotency.read("held-key")).toMatchObject({ state: "run", decision: kept });
      expect(await idempotency.reopen("held-key", { fence: 7 })).toBe("not-decided");
      // As it decides: nothing of that is kept, so that it cannot be taken back.
      await pool.query(`UPDATE ${name} SET state = 'done', token = 'x', reason = '' WHERE key = 'held-key'`);
      expect(await idempotency.reopen("held-key", { fence: 8 })).toBe("not-decided");
    });

    test("that claim to be of this version says at the first step what they lack, and is mended", async () => {
      const { pool, schema } = await oldTables();
      await pool.query(`UPDATE ${schema}.countersign_schema SET version = ${postgresSchemaVersion}`);
      const { idempotency } = createStores(pool, { schema });
      await expect(idempotency.read("held-key")).rejects.toThrow(
        /of another release; .* countersign migrate/,
      );
      await migratePostgres(pool, { schema });
      expect(await idempotency.read("held-key")).toMatchObject({ state: "held" });
    });
  });

  describe("on tables of version 3", () => {
    async function oldTables() {
      const pool = connectPool();
      const schema = isolatedName("pg");
      dropAfterTest(pool, schema);
      await pool.query(sqlOfRelease(3, schema));
      return { pool, schema };
    }

    test("leases work before and after it; transactions need it, and say so", async () => {
      const { pool, schema } = await oldTables();
      const stores = createPostgresStores({ database: fromPg(pool), schema, pruneIntervalMs: 0 });
      afterTest(() => stores.close());
      const { idempotency, nonces, transactions } = stores;
      expect((await idempotency.claim("k", claim)).status).toBe("acquired");
      expect(await nonces.claim(use)).toBe("fresh");
      const run = () => transactions.run(() => "done");
      await expect(run()).rejects.toThrow(/no function for transactions; .* countersign migrate/);
      await migratePostgres(pool, { schema });
      expect(await run()).toBe("done");
      expect(await idempotency.complete("k", "a")).toBe("ok");
      expect((await pool.query(`SELECT version, oldest FROM ${schema}.countersign_schema`)).rows).toEqual([
        { version: postgresSchemaVersion, oldest: 3 },
      ]);
    });

    test("makes the function anew that was dropped", async () => {
      const { pool, schema } = await oldTables();
      await migratePostgres(pool, { schema });
      await pool.query(`DROP FUNCTION ${schema}.countersign_begin`);
      await migratePostgres(pool, { schema });
      expect(
        (await pool.query("SELECT to_regprocedure($1) AS made", [`${schema}.countersign_begin(text)`])).rows,
      ).toEqual([{ made: `${schema}.countersign_begin(text)` }]);
    });
  });

  describe("on tables of version 4", () => {
    const claimOf = (key: string) => ({
      keys: [{ key, token: "a", fingerprint: "f" }],
      recovery: "hold" as const,
      waitMs: 1_000,
      idleTimeoutMs: 1_000,
    });

    async function oldTables() {
      const pool = connectPool();
      const schema = isolatedName("pg");
      dropAfterTest(pool, schema);
      const migrateOld = () => pool.query(sqlOfRelease(4, schema));
      await migrateOld();
      const stores = createPostgresStores({ database: fromPg(pool), schema, pruneIntervalMs: 0 });
      afterTest(() => stores.close());
      return { pool, schema, migrateOld, ...stores };
    }

    test("leases and transactions work before and after it; tasks need it, and say so", async () => {
      const { pool, schema, ready, idempotency, transactions, work } = await oldTables();
      await ready();
      const pay = (key: string) => transactions.run((tx) => transactions.begin(tx, claimOf(key)));
      expect((await idempotency.claim("k", claim)).status).toBe("acquired");
      expect((await pay("before")).keys).toEqual([{ status: "begun" }]);
      const add = () => transactions.run((tx) => work.add(tx, "q", [{ id: "1", body: "" }]));
      const steps = [add, () => work.summaries(), () => work.prune()];
      for (const step of steps) {
        await expect(step()).rejects.toThrow(
          /(function of the tables|tables) .* missing; .* countersign migrate/,
        );
      }
      await migratePostgres(pool, { schema });
      expect(await idempotency.complete("k", "a")).toBe("ok");
      expect((await pay("after")).keys).toEqual([{ status: "begun" }]);
      expect(await add()).toEqual([{ status: "added" }]);
      for (const step of steps) await step();
    });

    test("goes on serving a process of the release before, which leaves them as they are", async () => {
      const { pool, schema, migrateOld } = await oldTables();
      await migratePostgres(pool, { schema });
      await migrateOld();
      const versions = await pool.query(`SELECT version, oldest FROM ${schema}.countersign_schema`);
      expect(versions.rows).toEqual([{ version: 5, oldest: 3 }]);
      const call = { ...claimOf("k"), retentionMs: 86_400_000, holds: true, idleMs: 1_000 };
      const begun = `SELECT ${schema}.countersign_begin($1) AS answer`;
      const { rows } = await pool.query<{ answer: string }>(begun, [JSON.stringify(call)]);
      expect(JSON.parse(rows[0]?.answer ?? "")).toEqual({ nonce: "fresh", keys: [{ status: "begun" }] });
    });
  });

  test("is one transaction: a failure leaves nothing, and no transaction open on the connection", async () => {
    const pool = connectPool({ max: 1 });
    const schema = isolatedName("pg");
    dropAfterTest(pool, schema);
    await pool.query(`CREATE SCHEMA ${schema}`);
    await pool.query(`CREATE VIEW ${schema}.countersign_nonces AS SELECT 1 AS one`);
    await expect(migratePostgres(pool, { schema })).rejects.toThrow();
    const made = await pool.query(
      `SELECT relname FROM pg_class WHERE relnamespace = '${schema}'::regnamespace`,
    );
    expect(made.rows).toEqual([{ relname: "countersign_nonces" }]);
    expect((await pool.query("SELECT txid_current_if_assigned() AS id")).rows).toEqual([{ id: null }]);
  });

  test("is part of the caller's transaction when there is one", async () => {
    const pool = connectPool();
    const schema = isolatedName("pg");
    dropAfterTest(pool, schema);
    const client = await connectClient(pool);
    await client.query("BEGIN");
    await migratePostgres(client, { schema });
    await client.query("ROLLBACK");
    expect((await pool.query("SELECT FROM pg_namespace WHERE nspname = $1", [schema])).rowCount).toBe(0);
  });

  test("refuses tables of a later release, and so do the stores", async () => {
    const pool = connectPool();
    const schema = await createSchema(pool);
    const later = postgresSchemaVersion + 1;
    const set = (version: number, oldest: number | null) =>
      pool.query(`UPDATE ${schema}.countersign_schema SET version = $1, oldest = $2`, [version, oldest]);
    for (const oldest of [null, later]) {
      await set(later, oldest);
      await expect(migratePostgres(pool, { schema })).rejects.toThrow(
        /schema version 6, newer than 5: upgrade/,
      );
      const stores = createStores(pool, { schema });
      await expect(stores.idempotency.claim("k", claim)).rejects.toThrow(/schema version 6, .* upgrade/);
    }
    await set(0, null);
    const stores = createStores(pool, { schema });
    await expect(stores.ready()).rejects.toThrow(/schema version 0, .* countersign migrate/);
    await set(postgresSchemaVersion, null);
    expect((await stores.idempotency.claim("k", claim)).status).toBe("acquired");
  });

  test("leaves tables of a later release that takes this one's processes beside it, and so do the stores", async () => {
    const pool = connectPool();
    const schema = await createSchema(pool);
    const later = { version: postgresSchemaVersion + 1, oldest: postgresSchemaVersion };
    await pool.query(`UPDATE ${schema}.countersign_schema SET version = $1, oldest = $2`, [
      later.version,
      later.oldest,
    ]);
    await migratePostgres(pool, { schema });
    expect((await pool.query(`SELECT version, oldest FROM ${schema}.countersign_schema`)).rows).toEqual([
      later,
    ]);
    expect((await createStores(pool, { schema }).idempotency.claim("k", claim)).status).toBe("acquired");
  });

  test.each([
    ["quotes", `o'clock "x"`, `t"'`],
    ["letters beyond ASCII", "z\u00fcrich \u{1f4b8}", "\u00e9\u00e8"],
    ["SQL", "; DROP SCHEMA public; --", "--"],
    ["blanks and capitals", "Two Words", "Table"],
    ["the longest", undefined, "x".repeat(40)],
  ])("takes names with %s", async (_case, name, table) => {
    const pool = connectPool();
    const schema = name === undefined ? isolatedName("pg").padEnd(63, "x") : `${isolatedName("pg")} ${name}`;
    dropAfterTest(pool, schema);
    await migratePostgres(pool, { schema, table });
    await migratePostgres(pool, { schema, table });
    const { idempotency, nonces } = createStores(pool, { schema, table });
    expect((await idempotency.claim("k", claim)).status).toBe("acquired");
    expect(await idempotency.complete("k", "a")).toBe("ok");
    expect(await nonces.claim(use)).toBe("fresh");
    const made =
      "SELECT relname FROM pg_class WHERE relnamespace = (SELECT oid FROM pg_namespace WHERE nspname = $1)";
    const { rows } = await pool.query<{ relname: string }>(made, [schema]);
    expect(rows).toHaveLength(21);
    for (const { relname } of rows) expect(relname.startsWith(table)).toBe(true);
  });

  test("keeps stores of different tables in one schema apart", async () => {
    const { idempotency: payments, pool, schema } = await newStores({ table: "payments" });
    await migratePostgres(pool, { schema, table: "refunds" });
    const { idempotency: refunds } = createStores(pool, { schema, table: "refunds" });
    expect((await payments.claim("k", claim)).status).toBe("acquired");
    expect((await refunds.claim("k", { ...claim, token: "b" })).status).toBe("acquired");
  });
});

describe("postgresMigration()", () => {
  test("is shipped as a file for the default names", () => {
    const file = new URL("../migrations/005-countersign.sql", import.meta.url);
    expect(readFileSync(file, "utf8")).toBe(postgresMigration());
  });

  test("is countersign.countersign_* by default, and one statement", () => {
    const sql = postgresMigration();
    expect(sql).toBe(postgresMigration({ schema: undefined, table: "countersign" }));
    expect(sql).toContain('CREATE TABLE "countersign"."countersign_idempotency"');
    expect(sql).toMatch(/^DO \$countersign\$\n[\s\S]*\nEND\n\$countersign\$;\n$/);
  });
});

describeOnPostgres("the tables", () => {
  test.each([
    ["are missing", async () => isolatedName("pg")],
    ["are missing in a schema that is there", () => "pg_catalog"],
  ])("lead to `countersign migrate` when they %s", async (_case, schemaOf) => {
    const schema = await schemaOf();
    const { idempotency, nonces, ready } = createStores(connectPool(), { schema });
    const steps = [
      () => ready(),
      () => idempotency.claim("k", claim),
      () => idempotency.read("k"),
      () => idempotency.prune(),
      () => nonces.claim(use),
    ];
    for (const step of steps) {
      await expect(step()).rejects.toMatchObject({
        message: expect.stringMatching(/countersign_\* are missing; create them with: countersign migrate/),
        cause: expect.objectContaining({ code: "42P01" }),
      });
    }
  });

  test("lead to `countersign migrate` when one goes, or loses a column, while the stores run", async () => {
    const { idempotency, nonces, pool, schema } = await newStores();
    await idempotency.claim("k", claim);
    await pool.query(`ALTER TABLE ${schema}.countersign_idempotency DROP COLUMN reason`);
    await expect(idempotency.claim("k", claim)).rejects.toThrow(/of another release; .* countersign migrate/);
    await pool.query(`DROP TABLE ${schema}.countersign_nonces`);
    await expect(nonces.claim(use)).rejects.toThrow(/are missing; .* countersign migrate/);
  });

  test("are found by a store that was made before them", async () => {
    const pool = connectPool();
    const schema = isolatedName("pg");
    dropAfterTest(pool, schema);
    const { idempotency } = createStores(pool, { schema });
    await expect(idempotency.claim("k", claim)).rejects.toThrow(/countersign migrate/);
    await migratePostgres(pool, { schema });
    expect((await idempotency.claim("k", claim)).status).toBe("acquired");
  });

  test("are qualified: a temporary table of the same name is not used", async () => {
    const { idempotency, pool, schema } = await newStores({}, { max: 1 });
    await pool.query(
      `CREATE TEMP TABLE countersign_idempotency AS SELECT * FROM ${schema}.countersign_idempotency`,
    );
    await pool.query(`SET search_path = pg_temp, ${schema}`);
    await idempotency.claim("k", claim);
    expect((await pool.query(`SELECT FROM ${schema}.countersign_idempotency`)).rowCount).toBe(1);
  });

  test("are made and used without functions that others have put where the search_path finds them", async () => {
    const pool = connectPool();
    const [schema, others] = [isolatedName("pg"), isolatedName("others")];
    dropAfterTest(pool, schema);
    dropAfterTest(pool, others);
    await pool.query(`CREATE SCHEMA ${others}`);
    const trap = "LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'trapped %', current_user; END $$";
    // Each would suit a call with an untyped literal, or types that the server has to convert, better than the server's own.
    for (const signature of [
      "hashtextextended(text, integer) RETURNS bigint",
      "is_same(oid, regclass) RETURNS boolean",
      "times(numeric, integer) RETURNS numeric",
    ]) {
      await pool.query(`CREATE FUNCTION ${others}.${signature} ${trap}`);
    }
    await pool.query(
      `CREATE OPERATOR ${others}.= (LEFTARG = oid, RIGHTARG = regclass, FUNCTION = ${others}.is_same)`,
    );
    await pool.query(
      `CREATE OPERATOR ${others}.* (LEFTARG = numeric, RIGHTARG = integer, FUNCTION = ${others}.times)`,
    );
    const trapped = connectPool({ options: `-c search_path=${others}` });
    await migratePostgres(trapped, { schema });
    await migratePostgres(trapped, { schema });
    const { idempotency, nonces, ready } = createStores(trapped, { schema });
    await ready();
    expect((await idempotency.claim("k", { ...claim, leaseMs: 1 })).status).toBe("acquired");
    expect(await idempotency.release("k", "a")).toBe("ok");
    expect((await idempotency.claim("k", claim)).status).toBe("acquired");
    expect(await idempotency.complete("k", "a")).toBe("ok");
    expect(await nonces.claim(use)).toBe("fresh");
    expect(await nonces.claim({ ...use, token: "b" })).toBe("seen");
    expect((await idempotency.list({ state: "done", limit: 1 })).entries).toHaveLength(1);
    expect([await idempotency.prune(), await nonces.prune()]).toEqual([0, 0]);
    await doAllWork(trapped, schema);
  });
});

/** Every step of the table of work. */
async function doAllWork(pool: Pool, schema: string): Promise<void> {
  const stores = createPostgresStores({ database: fromPg(pool), schema, pruneIntervalMs: 0 });
  afterTest(() => stores.close());
  const { work, transactions } = stores;
  const decision = { by: "anna", note: "why" };
  const owned = { queue: "q", id: "1", token: "a" };
  const add = (body: string) => transactions.run((tx) => work.add(tx, "q", [{ id: "1", entity: "e", body }]));
  const claimed = { ...owned, entity: "e", body: "", addedAtMs: expect.any(Number) };
  const claimTask = () => work.claim({ queue: "q", limit: 10, token: "a", leaseMs: 60_000 });
  expect([await add(""), await add("other")]).toEqual([
    [{ status: "added" }],
    [{ status: "known", body: "" }],
  ]);
  expect(await claimTask()).toEqual([{ ...claimed, attempt: 1 }]);
  expect(await work.extend([owned], 60_000)).toEqual(["1"]);
  await work.giveBack([owned], 0);
  expect(await claimTask()).toEqual([{ ...claimed, attempt: 1 }]);
  expect(await work.fail(owned, { reason: "why", retryInMs: undefined })).toBe(true);
  expect(await work.retry("q", { ids: ["1"] })).toBe(1);
  expect(await claimTask()).toEqual([{ ...claimed, attempt: 1 }]);
  expect(await transactions.run((tx) => work.finish(tx, owned))).toBe(true);
  expect(await work.discard("q", ["1"], decision)).toBe(0);
  expect(await transactions.run((tx) => work.advance(tx, { scope: "s", subject: "s", at: 1n }))).toBe(true);
  await work.pause("q", decision);
  expect(await work.summaries()).toMatchObject([{ queue: "q", open: 0, done: 1, paused: decision }]);
  expect(await work.resume("q")).toBe(true);
  expect(await work.read("q", "1")).toMatchObject({ state: "done" });
  expect((await work.list({ queue: "q", limit: 1 })).tasks).toHaveLength(1);
  expect(await work.prune()).toBe(0);
}

describeOnPostgres("a role", () => {
  async function roles() {
    const owner = connectPool();
    const schema = isolatedName("pg");
    const role = isolatedName("role");
    await owner.query(`CREATE ROLE ${role} LOGIN NOINHERIT`);
    afterTest(async () => {
      await owner.query(`DROP OWNED BY ${role}`);
      await owner.query(`DROP ROLE ${role}`);
    });
    dropAfterTest(owner, schema);
    await migratePostgres(owner, { schema });
    const url = new URL(postgresUrl ?? "");
    url.username = role;
    const pool = connectPool({ connectionString: url.href });
    return { owner, schema, role, pool };
  }

  // As its page shows them, for the names of this test.
  const grants = (schema: string, role: string): string[] =>
    readFileSync(new URL("../../../../site/snippets/grants.sql", import.meta.url), "utf8")
      .replaceAll(/\bcountersign\b/g, schema)
      .replaceAll("TO platform", `TO ${role}`)
      .split(";")
      .filter((grant) => grant.trim() !== "");

  test("with the grants of the page can do all that the stores do, and make no table", async () => {
    const { owner, schema, role, pool } = await roles();
    for (const grant of grants(schema, role)) await owner.query(grant);
    const { idempotency, nonces, ready } = createStores(pool, { schema });
    await ready();
    await idempotency.claim("k", claim);
    await idempotency.heartbeat("k", "a", 1000);
    const client = await connectClient(pool);
    await client.query("BEGIN");
    expect(
      await idempotency.completeIn({ query: (text, values) => client.query(text, values) }, "k", "a"),
    ).toBe("ok");
    await client.query("COMMIT");
    await idempotency.claim("k2", claim);
    await idempotency.hold("k2", "a", "why");
    await idempotency.resolve("k2", "done", { fence: (await idempotency.read("k2"))?.fence ?? 0 });
    await idempotency.claim("k3", claim);
    await idempotency.release("k3", "a");
    await idempotency.list({ state: "done", limit: 10 });
    await idempotency.prune();
    expect(await nonces.claim(use)).toBe("fresh");
    await nonces.prune();
    await doAllWork(pool, schema);
    await migratePostgres(pool, { schema });
    const elsewhere = migratePostgres(pool, { schema, table: "other" });
    await expect(elsewhere).rejects.toMatchObject({ cause: { code: "42501" } });
  });

  test.each([
    ["the schema", 0],
    ["the version", 1],
    ["the tables", 2],
  ])("without the grant on %s is told what to grant", async (_case, missing) => {
    const { owner, schema, role, pool } = await roles();
    for (const [index, grant] of grants(schema, role).entries())
      if (index !== missing) await owner.query(grant);
    const { idempotency } = createStores(pool, { schema });
    await expect(idempotency.claim("k", claim)).rejects.toMatchObject({
      message: expect.stringMatching(/may not use the tables .*; GRANT USAGE on the schema/),
      cause: expect.objectContaining({ code: "42501" }),
    });
  });

  test("that only reads is told to use the primary server", async () => {
    const { schema } = await newStores();
    const pool = connectPool({ options: "-c default_transaction_read_only=on" });
    const { idempotency } = createPostgresStores({ pool, schema, pruneIntervalMs: 0 });
    await expect(idempotency.claim("k", claim)).rejects.toThrow(/cannot be written here; .* primary/);
  });
});
