import { readFileSync } from "node:fs";
import { createStores, migrate, postgresMigration, postgresSchemaVersion } from "@countersign/store-sql";
import { fromPg } from "@countersign/store-sql/pg";
import { describe, expect, test } from "@jest/globals";
import type { Pool } from "pg";
import { describeOnPostgres, isolatedName, postgresUrl } from "@countersign/test-support/servers/engines.ts";
import { afterTest } from "@countersign/test-support/runs/after-test.ts";
import {
  connectClient,
  connectPool,
  createSchema,
  openStores,
  dropAfterTest,
  newStores,
} from "./connections.ts";

const claim = { token: "a", fingerprint: "f", leaseMs: 60_000, recovery: "hold" } as const;
const use = { scope: "s", nonce: "n", token: "a", retainMs: 60_000 };
const payment = {
  keys: [{ key: "paid", token: "a", fingerprint: "f" }],
  recovery: "hold" as const,
  leaseMs: 60_000,
  waitMs: 1_000,
  idleTimeoutMs: 1_000,
};

describeOnPostgres("migrate()", () => {
  test("creates schema and tables, and can be repeated without touching what is there", async () => {
    const { idempotency, pool, schema } = await newStores();
    await idempotency.claim("k", claim);
    await migrate(pool, { schema });
    expect(await idempotency.read("k")).toMatchObject({ state: "running" });
    const { rows } = await pool.query(`SELECT version FROM ${schema}.countersign_schema`);
    expect(rows).toEqual([{ version: postgresSchemaVersion }]);
    const tables = `SELECT relname, relpersistence FROM pg_class WHERE relnamespace = '${schema}'::regnamespace AND relkind IN ('r', 'S') ORDER BY 1`;
    expect((await pool.query(tables)).rows).toEqual([
      { relname: "countersign_answers", relpersistence: "p" },
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
      // Each of the two makes the schema, under a lock of its own.
      const migrations = Array.from({ length: 4 }, () => [
        migrate(pool, { schema }),
        migrate(pool, { schema, table: "other" }),
      ]);
      await Promise.all(migrations.flat());
      expect((await pool.query(`SELECT version FROM ${schema}.countersign_schema`)).rowCount).toBe(1);
      await openStores(pool, { schema }).ready();
    },
  );

  test("locks nothing when there is nothing to do: payments in progress neither wait nor keep it waiting", async () => {
    const { idempotency, pool, schema } = await newStores();
    await idempotency.claim("k", claim);
    const client = await connectClient(pool);
    await client.query("BEGIN");
    await client.query(`UPDATE ${schema}.countersign_idempotency SET version = version + 1`);
    await client.query(`LOCK TABLE ${schema}.countersign_nonces IN SHARE MODE`);
    const impatient = connectPool({ options: "-c lock_timeout=200" });
    await migrate(impatient, { schema });
    await client.query("COMMIT");
  });

  test("makes a table again that was dropped, and leaves the others", async () => {
    const { idempotency, nonces, pool, schema } = await newStores();
    await idempotency.claim("k", claim);
    await pool.query(`DROP TABLE ${schema}.countersign_nonces`);
    await migrate(pool, { schema });
    expect(await nonces.claim(use)).toBe("fresh");
    expect(await idempotency.read("k")).toMatchObject({ state: "running" });
  });

  test("is one transaction: a failure leaves nothing, and no transaction open on the connection", async () => {
    const pool = connectPool({ max: 1 });
    const schema = isolatedName("pg");
    dropAfterTest(pool, schema);
    await pool.query(`CREATE SCHEMA ${schema}`);
    await pool.query(`CREATE VIEW ${schema}.countersign_nonces AS SELECT 1 AS one`);
    await expect(migrate(pool, { schema })).rejects.toThrow();
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
    await migrate(client, { schema });
    await client.query("ROLLBACK");
    expect((await pool.query("SELECT FROM pg_namespace WHERE nspname = $1", [schema])).rowCount).toBe(0);
  });

  const setVersion = (pool: Pool, schema: string, version: number, oldest: number | null) =>
    pool.query(`UPDATE ${schema}.countersign_schema SET version = $1, oldest = $2`, [version, oldest]);
  const later = postgresSchemaVersion + 1;

  test.each<[number, number | null, RegExp, RegExp]>([
    [later, null, /schema version 4, this release makes 3: upgrade/, /schema version 4, .* upgrade/],
    [later, later, /schema version 4, this release makes 3: upgrade/, /schema version 4, .* upgrade/],
    [1, 1, /schema version 1, .* no release made such tables/, /schema version 1, .* countersign migrate/],
    [0, null, /schema version 0, .* no release made such tables/, /schema version 0, .* countersign migrate/],
  ])(
    "refuses tables of version %s that take processes from %s, and so do the stores",
    async (version, oldest, migrated, begun) => {
      const pool = connectPool();
      const schema = await createSchema(pool);
      await setVersion(pool, schema, version, oldest);
      await pool.query(`DROP TABLE ${schema}.countersign_nonces`);
      await expect(migrate(pool, { schema })).rejects.toThrow(migrated);
      const { rows } = await pool.query(
        `SELECT version, oldest, to_regclass('${schema}.countersign_nonces') AS made FROM ${schema}.countersign_schema`,
      );
      expect(rows).toEqual([{ version, oldest, made: null }]);
      const stores = openStores(pool, { schema });
      await expect(stores.ready()).rejects.toThrow(begun);
      await expect(stores.idempotency.claim("k", claim)).rejects.toThrow(begun);
      await setVersion(pool, schema, postgresSchemaVersion, null);
      await migrate(pool, { schema });
      expect((await stores.idempotency.claim("k", claim)).status).toBe("acquired");
    },
  );

  /** As a later release may do, beside processes of this one: a column without a default, a table, another function. */
  const laterMigration = (schema: string): string => `BEGIN;
    ALTER TABLE ${schema}.countersign_idempotency ADD COLUMN later text COLLATE "C";
    CREATE TABLE ${schema}.countersign_later (id integer PRIMARY KEY);
    CREATE FUNCTION ${schema}.countersign_begin_later(text) RETURNS text LANGUAGE sql AS 'SELECT $1';
    UPDATE ${schema}.countersign_schema SET version = ${later}, oldest = ${postgresSchemaVersion};
    COMMIT`;

  test("leaves tables of a later release that takes this one's processes beside it, which go on and may restart", async () => {
    const pool = connectPool();
    const schema = await createSchema(pool);
    const processes = Array.from({ length: 2 }, () => {
      const stores = createStores({ database: fromPg(pool), schema, pruneIntervalMs: 0 });
      afterTest(() => stores.close());
      return stores;
    });
    const [running, restarted] = processes;
    await running?.idempotency.claim("k", claim);
    await pool.query(laterMigration(schema));
    await pool.query(`UPDATE ${schema}.countersign_idempotency SET later = 'kept'`);
    await pool.query(`DROP TABLE ${schema}.countersign_newest`);
    await migrate(pool, { schema });
    const { rows } = await pool.query(
      `SELECT version, oldest, to_regclass('${schema}.countersign_newest') AS made FROM ${schema}.countersign_schema`,
    );
    expect(rows).toEqual([{ version: later, oldest: postgresSchemaVersion, made: null }]);
    await restarted?.ready();
    expect(await restarted?.idempotency.complete("k", "a")).toBe("ok");
    for (const [place, { transactions, work }] of processes.entries()) {
      const pay = () =>
        transactions.run(async (tx) => {
          const begun = await transactions.begin(tx, payment);
          if (begun.keys[0]?.status === "begun") await transactions.keep(tx, payment.keys, false);
          return begun;
        });
      expect((await pay()).keys).toMatchObject([{ status: place === 0 ? "begun" : "done" }]);
      const add = () => transactions.run((tx) => work.add(tx, "q", [{ id: "1", body: "" }]));
      expect(await add()).toMatchObject([{ status: place === 0 ? "added" : "known" }]);
    }
    const kept = await pool.query(
      `SELECT state, later FROM ${schema}.countersign_idempotency WHERE key = 'k'`,
    );
    expect(kept.rows).toEqual([{ state: "done", later: "kept" }]);
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
    await migrate(pool, { schema, table });
    await migrate(pool, { schema, table });
    const { idempotency, nonces } = openStores(pool, { schema, table });
    expect((await idempotency.claim("k", claim)).status).toBe("acquired");
    expect(await idempotency.complete("k", "a")).toBe("ok");
    expect(await nonces.claim(use)).toBe("fresh");
    const made =
      "SELECT relname FROM pg_class WHERE relnamespace = (SELECT oid FROM pg_namespace WHERE nspname = $1)";
    const { rows } = await pool.query<{ relname: string }>(made, [schema]);
    expect(rows).toHaveLength(24);
    for (const { relname } of rows) expect(relname.startsWith(table)).toBe(true);
  });

  test("keeps stores of different tables in one schema apart", async () => {
    const { idempotency: payments, pool, schema } = await newStores({ table: "payments" });
    await migrate(pool, { schema, table: "refunds" });
    const { idempotency: refunds } = openStores(pool, { schema, table: "refunds" });
    expect((await payments.claim("k", claim)).status).toBe("acquired");
    expect((await refunds.claim("k", { ...claim, token: "b" })).status).toBe("acquired");
  });
});

describe("postgresMigration()", () => {
  test("is countersign.countersign_* by default, and one statement", () => {
    const sql = postgresMigration();
    expect(sql).toBe(postgresMigration({ schema: undefined, table: "countersign" }));
    expect(sql).toContain('CREATE TABLE "countersign"."countersign_idempotency"');
    expect(sql).toMatch(/^DO \$countersign\$\n[\s\S]*\nEND\n\$countersign\$;\n$/);
  });
});

describeOnPostgres("the tables", () => {
  test.each([
    ["are missing", isolatedName("pg"), "--schema cs_pg_"],
    ["are missing in a schema that is there", "pg_catalog", "--schema pg_catalog"],
    ["have a name that a shell would split", "o'brien pays", String.raw`--schema 'o'\''brien pays'`],
  ])("lead to `countersign migrate` when they %s", async (_case, schema, flag) => {
    const { idempotency, nonces, ready } = openStores(connectPool(), { schema });
    const steps = [
      () => ready(),
      () => idempotency.claim("k", claim),
      () => idempotency.read("k"),
      () => idempotency.prune(),
      () => nonces.claim(use),
    ];
    for (const step of steps) {
      await expect(step()).rejects.toMatchObject({
        message: expect.stringContaining(
          `.countersign_* are missing; create them with: countersign migrate ${flag}`,
        ),
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
    const { idempotency } = openStores(pool, { schema });
    await expect(idempotency.claim("k", claim)).rejects.toThrow(/countersign migrate/);
    await migrate(pool, { schema });
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
    await migrate(trapped, { schema });
    await migrate(trapped, { schema });
    const { idempotency, nonces, ready } = openStores(trapped, { schema });
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
  const stores = createStores({ database: fromPg(pool), schema, pruneIntervalMs: 0 });
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
    await migrate(owner, { schema });
    const url = new URL(postgresUrl ?? "");
    url.username = role;
    const pool = connectPool({ connectionString: url.href });
    return { owner, schema, role, pool };
  }

  // As its page shows them, for the names of this test.
  const grants = (schema: string, role: string): string[] =>
    readFileSync(new URL("../../../../../site/snippets/grants.sql", import.meta.url), "utf8")
      .replaceAll(/\bcountersign\b/g, schema)
      .replaceAll("TO platform", `TO ${role}`)
      .split(";")
      .filter((grant) => grant.trim() !== "");

  test("with the grants of the page can do all that the stores do, and make no table", async () => {
    const { owner, schema, role, pool } = await roles();
    for (const grant of grants(schema, role)) await owner.query(grant);
    const { idempotency, nonces, ready } = openStores(pool, { schema });
    await ready();
    await idempotency.claim("k", claim);
    await idempotency.heartbeat("k", "a", 1000);
    expect(await idempotency.complete("k", "a")).toBe("ok");
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
    await migrate(pool, { schema });
    const elsewhere = migrate(pool, { schema, table: "other" });
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
    const { idempotency } = openStores(pool, { schema });
    await expect(idempotency.claim("k", claim)).rejects.toMatchObject({
      message: expect.stringMatching(/may not use the tables .*; GRANT USAGE on the schema/),
      cause: expect.objectContaining({ code: "42501" }),
    });
  });

  test("that only reads is told to use the primary server", async () => {
    const { schema } = await newStores();
    const pool = connectPool({ options: "-c default_transaction_read_only=on" });
    const { idempotency } = createStores({ pool, schema, pruneIntervalMs: 0 });
    await expect(idempotency.claim("k", claim)).rejects.toThrow(/cannot be written here; .* primary/);
  });
});
