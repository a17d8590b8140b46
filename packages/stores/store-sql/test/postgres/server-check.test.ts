import { fromPg } from "@countersign/store-sql/pg";
import { createStores, migrate, postgresSchemaVersion } from "@countersign/store-sql";
import { postgresMissingKeys } from "@countersign/store-sql/internal";
import type { Database } from "@countersign/idempotency";
import { afterTest } from "@countersign/test-support/runs/after-test.ts";
import { describeServerCheck } from "@countersign/test-support/runs/server-check.ts";
import { describeOnPostgres } from "@countersign/test-support/servers/engines.ts";
import { expect, test } from "@jest/globals";
import { escapeLiteral } from "pg";
import { connectClient, connectPool, createSchema, openStores, newStores } from "./connections.ts";

type Settings = Partial<Record<keyof typeof sound, unknown>>;

const claim = { token: "a", fingerprint: "f", leaseMs: 60_000, recovery: "hold" } as const;

const sound = {
  engine: "PostgreSQL 15.4 (Debian 15.4-1.pgdg120+1) on x86_64-pc-linux-gnu, compiled by gcc, 64-bit",
  version: "150004",
  encoding: "UTF8",
  fsync: "on",
  full_page_writes: "on",
  standby: false,
  unlogged: "0",
  missing_keys: null,
};

/** As version() of other engines looks: nobody has run them here. */
const others = {
  CockroachDB:
    "CockroachDB CCL v25.2.1 (x86_64-pc-linux-gnu, built 2025/06/04 15:29:58, go1.23.7 X:nocoverageredesign)",
  YugabyteDB:
    "PostgreSQL 15.2-YB-2.25.1.0-b0 on x86_64-pc-linux-gnu, compiled by clang version 17.0.6, 64-bit",
  "an earlier YugabyteDB": "PostgreSQL 11.2-YB-2.20.1.0-b0 on x86_64-pc-linux-gnu, compiled by clang, 64-bit",
};

const escaped = (text: string): string => text.replaceAll(/[.+()]/g, String.raw`\$&`);

const never = (engine: string): RegExp =>
  new RegExp(
    `: the server is ${escaped(engine)}, on which the stores were never tried; use PostgreSQL 13 or newer$`,
  );

function serverWith(settings: Settings) {
  const asked: string[] = [];
  const database: Database<object> = {
    dialect: "postgresql",
    library: "fake",
    tellsRollback: true,
    run: () => Promise.reject(new Error("not asked for")),
    query: () => Promise.reject(new Error("not asked for")),
    gateOf: () => undefined,
    alone(text) {
      asked.push(text);
      const isSettings = text.includes("server_version_num") || text.includes("version()");
      return Promise.resolve([
        isSettings ? { ...sound, ...settings } : { version: String(postgresSchemaVersion) },
      ]);
    },
  };
  return { asked, database };
}

function storesOn(database: Database<object>) {
  const stores = createStores({ database, pruneIntervalMs: 0 });
  afterTest(() => stores.close());
  return stores;
}

describeServerCheck<Settings>({
  guard: "createStores",
  code: "postgres-not-durable",
  statements: 3,
  serverWith,
  storesOn,
  refused: [
    ...Object.entries(others).map(([name, engine]) => [`is ${name}`, { engine }, never(engine)] as const),
    ["is older than 13", { version: "120022" }, /PostgreSQL 12 is too old, 13 or newer/],
    ["tells no version", { version: "" }, /no integer/],
    [
      "has a database that is not in UTF-8",
      { encoding: "SQL_ASCII" },
      /encoding SQL_ASCII, .* ENCODING 'UTF8'/,
    ],
    ["is a standby", { standby: true }, /standby; connect the pool to the primary/],
    ["has unlogged tables", { unlogged: "1" }, /unlogged, .* SET LOGGED/],
    [
      "has a table without its key",
      { missing_keys: "ALTER TABLE …" },
      /lost their primary key, .*; run: ALTER TABLE …/,
    ],
  ],
  noticed: [
    ["fsync is off", { fsync: "off" }, /^fsync off/],
    ["full_page_writes is off", { full_page_writes: "off" }, /^full_page_writes off/],
    ["both are off", { fsync: "off", full_page_writes: "off" }, /^fsync and full_page_writes off/],
  ],
  inProduction: [{ fsync: "off" }, /fsync off: .* fsync = on/],
});

test("full_page_writes may be off in production", async () => {
  const environment = process.env["NODE_ENV"];
  afterTest(() => void (process.env["NODE_ENV"] = environment));
  process.env["NODE_ENV"] = "production";
  await storesOn(serverWith({ full_page_writes: "off" }).database).ready();
});

describeOnPostgres("ready() on a server", () => {
  test("finds its settings and tables in order", async () => {
    const { ready } = await newStores();
    await ready();
  });

  test("finds another engine by every shape of pg, and so does the migration", async () => {
    const admin = connectPool();
    const schema = await createSchema(admin);
    const engine = others.CockroachDB;
    await admin.query(
      `CREATE FUNCTION ${schema}.version() RETURNS text LANGUAGE sql AS ${escapeLiteral(`SELECT ${escapeLiteral(engine)}`)}`,
    );
    afterTest(() => admin.query(`DROP FUNCTION ${schema}.version()`));
    // Before the catalog: the server answers as that engine does.
    const pool = connectPool({ options: `-c search_path=${schema},pg_catalog` });
    const client = await connectClient(pool);
    const onlyQueries = { query: (text: string, values?: unknown[]) => pool.query(text, values) };
    for (const options of [{ pool }, { pool, prepare: true }, { pool: client }, { pool: onlyQueries }]) {
      const stores = createStores({ ...options, schema, pruneIntervalMs: 0 });
      afterTest(() => stores.close());
      // oxlint-disable-next-line no-await-in-loop -- one shape after the other
      await expect(stores.ready()).rejects.toThrow(never(engine));
      // oxlint-disable-next-line no-await-in-loop -- as above
      await expect(stores.idempotency.claim("k", claim)).rejects.toThrow(never(engine));
    }
    for (const database of [pool, client, onlyQueries, fromPg(pool)]) {
      // oxlint-disable-next-line no-await-in-loop -- as above
      await expect(migrate(database, { schema })).rejects.toThrow(never(engine));
    }
  });

  test("finds an unlogged table", async () => {
    const pool = connectPool();
    const schema = await createSchema(pool);
    await pool.query(`ALTER TABLE ${schema}.countersign_nonces SET UNLOGGED`);
    const stores = createStores({ pool, schema, pruneIntervalMs: 0 });
    await expect(stores.ready()).rejects.toThrow(/unlogged/);
    await expect(stores.nonces.claim({ scope: "s", nonce: "n", token: "a", retainMs: 1 })).rejects.toThrow(
      /unlogged/,
    );
  });

  test.each([
    ["idempotency", "key"],
    ["nonces", "digest"],
    ["answers", "token"],
  ])("finds the table of %s without its primary key, and tells what mends it", async (name, column) => {
    const pool = connectPool();
    const schema = await createSchema(pool);
    const table = `"${schema}"."countersign_${name}"`;
    await pool.query(`ALTER TABLE ${table} DROP CONSTRAINT countersign_${name}_pkey`);
    const remedy = `ALTER TABLE ${table} ADD PRIMARY KEY (${column})`;
    const lost = expect.objectContaining({
      message: expect.stringMatching(/: tables have lost their primary key, /),
    });
    await expect(migrate(pool, { schema })).rejects.toEqual(lost);
    await expect(openStores(pool, { schema }).ready()).rejects.toThrow(`; run: ${remedy}`);
    await expect(openStores(pool, { schema }).idempotency.claim("k", claim)).rejects.toEqual(lost);
    // What ON CONFLICT does not take either.
    await pool.query(`CREATE UNIQUE INDEX ON ${table} (${column}, until_at)`);
    await pool.query(`CREATE UNIQUE INDEX ON ${table} (${column}) WHERE until_at IS NOT NULL`);
    await pool.query(`ALTER TABLE ${table} ADD CONSTRAINT late UNIQUE (${column}) DEFERRABLE`);
    expect(await postgresMissingKeys(pool, { schema })).toBe(remedy);
    await pool.query(`ALTER TABLE ${table} DROP CONSTRAINT late`);
    await pool.query(remedy);
    await migrate(pool, { schema });
    const { ready, idempotency, nonces } = openStores(pool, { schema });
    await ready();
    expect(await idempotency.claim("k", claim)).toMatchObject({ status: "acquired" });
    expect(await nonces.claim({ scope: "s", nonce: "n", token: "a", retainMs: 1 })).toBe("fresh");
  });

  test.each(["idempotency", "nonces", "lanes", "tasks", "queues", "newest", "answers"])(
    "finds that %s alone is missing, and the migration makes it again",
    async (name) => {
      const pool = connectPool();
      const schema = await createSchema(pool);
      const lost = `"${schema}"."countersign_${name}"`;
      await pool.query(`DROP TABLE ${lost}`);
      const { ready, nonces } = openStores(pool, { schema });
      const remedy = `missing: ${lost}; run: countersign migrate --schema ${schema}`;
      await expect(ready()).rejects.toThrow(remedy);
      const use = { scope: "s", nonce: "n", token: "a", retainMs: 1 };
      await expect(nonces.claim(use)).rejects.toThrow(remedy);
      await migrate(pool, { schema });
      await ready();
      expect(await nonces.claim(use)).toBe("fresh");
    },
  );

  test("takes a unique index in place of a primary key, and knows no table that is not there", async () => {
    const pool = connectPool();
    const schema = await createSchema(pool);
    await pool.query(
      `ALTER TABLE ${schema}.countersign_idempotency DROP CONSTRAINT countersign_idempotency_pkey`,
    );
    await pool.query(`CREATE UNIQUE INDEX ON ${schema}.countersign_idempotency (key) INCLUDE (state)`);
    const { ready, idempotency } = openStores(pool, { schema });
    await ready();
    expect(await idempotency.claim("k", claim)).toMatchObject({ status: "acquired" });
    expect(await postgresMissingKeys(pool, { schema: `${schema}_none` })).toBeUndefined();
  });
});
