import { subscribe, unsubscribe } from "node:diagnostics_channel";
import {
  createPostgresStores,
  migratePostgres,
  postgresMissingKeys,
  postgresSchemaVersion,
} from "@countersign/store-postgres";
import type { Row } from "@countersign/idempotency/store";
import { afterEach, beforeEach, describe, expect, test } from "@jest/globals";
import { refusesUnanswered } from "@countersign/test-support/runs/unanswered.ts";
import { describeOnPostgres } from "@countersign/test-support/servers/engines.ts";
import { connectPool, createSchema, createStores, newStores } from "./connections.ts";

type PostgresQueryable = Parameters<typeof migratePostgres>[0];

const claim = { token: "a", fingerprint: "f", leaseMs: 60_000, recovery: "hold" } as const;

const sound = {
  version: "150004",
  encoding: "UTF8",
  fsync: "on",
  full_page_writes: "on",
  standby: false,
  unlogged: "0",
  missing_keys: null,
};

function serverWith(
  settings: Partial<Record<keyof typeof sound, unknown>>,
): PostgresQueryable & { asked: string[] } {
  const asked: string[] = [];
  return {
    asked,
    query: (text) => {
      asked.push(text);
      return Promise.resolve({
        rows: [
          text.includes("server_version_num")
            ? { ...sound, ...settings }
            : { version: String(postgresSchemaVersion) },
        ],
      });
    },
  };
}

describe("a line that never answers stops nobody for ever", () => {
  const isLate = refusesUnanswered();

  test("at the check of the server", async () => {
    const { query } = serverWith({});
    const answers = [() => new Promise<never>(() => {})];
    const pool: PostgresQueryable = { query: (text) => answers.shift()?.() ?? query(text) };
    const { ready } = createPostgresStores({ pool, pruneIntervalMs: 0 });
    await isLate(() => ready());
    expect(await ready()).toBeUndefined();
  });

  test("at the proof that a library's transactions are some", async () => {
    const { query } = serverWith({});
    let runs = 0;
    const { transactions } = createPostgresStores<object>({
      database: {
        dialect: "postgresql",
        library: "fake",
        tellsRollback: true,
        run: () => (++runs === 1 ? new Promise(() => {}) : Promise.reject(new Error("asked again"))),
        query: () => Promise.reject(new Error("not asked for")),
        alone: async (text) => (await query(text)).rows as Row[],
      },
      pruneIntervalMs: 0,
    });
    await isLate(() => transactions.run(() => {}));
    await expect(transactions.run(() => {})).rejects.toThrow("asked again");
  });
});

describe("ready()", () => {
  const environment = process.env["NODE_ENV"];
  let notices: unknown[];
  const listener = (notice: unknown) => notices.push(notice);

  beforeEach(() => {
    notices = [];
    subscribe("countersign:notice", listener);
  });

  afterEach(() => {
    unsubscribe("countersign:notice", listener);
    process.env["NODE_ENV"] = environment;
  });

  test.each<[string, Partial<Record<keyof typeof sound, unknown>>, RegExp]>([
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
  ])("rejects where the server %s", async (_case, settings, message) => {
    const { ready } = createStores(serverWith(settings), {});
    await expect(ready()).rejects.toThrow(message);
  });

  test.each([
    ["fsync", { fsync: "off" }, /^fsync off/],
    ["full_page_writes", { full_page_writes: "off" }, /^full_page_writes off/],
    ["both", { fsync: "off", full_page_writes: "off" }, /^fsync and full_page_writes off/],
  ])("publishes a notice, once, where %s is off", async (_case, settings, message) => {
    const { ready } = createStores(serverWith(settings), {});
    await ready();
    await ready();
    expect(notices).toEqual([
      {
        guard: "createPostgresStores",
        code: "postgres-not-durable",
        message: expect.stringMatching(message),
      },
    ]);
  });

  test("says nothing about a sound server", async () => {
    await createStores(serverWith({}), {}).ready();
    expect(notices).toEqual([]);
  });

  test("rejects in production where fsync is off, every time, and lets full_page_writes be off", async () => {
    process.env["NODE_ENV"] = "production";
    const stores = createStores(serverWith({ fsync: "off" }), {});
    await expect(stores.ready()).rejects.toThrow(/fsync off: .* fsync = on/);
    await expect(stores.idempotency.claim("k", claim)).rejects.toThrow(/fsync off/);
    await createStores(serverWith({ full_page_writes: "off" }), {}).ready();
  });

  test("is asked once by many first steps, and sends nothing before the first", async () => {
    const server = serverWith({});
    const { ready } = createStores(server, {});
    expect(server.asked).toEqual([]);
    await Promise.all([ready(), ready(), ready()]);
    await ready();
    expect(server.asked).toHaveLength(2);
  });

  test("asks again after a check that failed", async () => {
    let isDown = true;
    const server = serverWith({});
    const flapping: PostgresQueryable = {
      query: (text, values) => (isDown ? Promise.reject(new Error("down")) : server.query(text, values)),
    };
    const { ready } = createStores(flapping, {});
    await expect(Promise.all([ready(), ready()])).rejects.toThrow("down");
    isDown = false;
    await ready();
  });
});

describeOnPostgres("ready() on a server", () => {
  test("finds its settings and tables in order", async () => {
    const { ready } = await newStores();
    await ready();
  });

  test("finds an unlogged table", async () => {
    const pool = connectPool();
    const schema = await createSchema(pool);
    await pool.query(`ALTER TABLE ${schema}.countersign_nonces SET UNLOGGED`);
    const stores = createPostgresStores({ pool, schema, pruneIntervalMs: 0 });
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
    await expect(migratePostgres(pool, { schema })).rejects.toEqual(lost);
    await expect(createStores(pool, { schema }).ready()).rejects.toThrow(`; run: ${remedy}`);
    await expect(createStores(pool, { schema }).idempotency.claim("k", claim)).rejects.toEqual(lost);
    // What ON CONFLICT does not take either.
    await pool.query(`CREATE UNIQUE INDEX ON ${table} (${column}, until_at)`);
    await pool.query(`CREATE UNIQUE INDEX ON ${table} (${column}) WHERE until_at IS NOT NULL`);
    await pool.query(`ALTER TABLE ${table} ADD CONSTRAINT late UNIQUE (${column}) DEFERRABLE`);
    expect(await postgresMissingKeys(pool, { schema })).toBe(remedy);
    await pool.query(`ALTER TABLE ${table} DROP CONSTRAINT late`);
    await pool.query(remedy);
    await migratePostgres(pool, { schema });
    const { ready, idempotency, nonces } = createStores(pool, { schema });
    await ready();
    expect(await idempotency.claim("k", claim)).toMatchObject({ status: "acquired" });
    expect(await nonces.claim({ scope: "s", nonce: "n", token: "a", retainMs: 1 })).toBe("fresh");
  });

  test("takes a unique index in place of a primary key, and knows no table that is not there", async () => {
    const pool = connectPool();
    const schema = await createSchema(pool);
    await pool.query(
      `ALTER TABLE ${schema}.countersign_idempotency DROP CONSTRAINT countersign_idempotency_pkey`,
    );
    await pool.query(`CREATE UNIQUE INDEX ON ${schema}.countersign_idempotency (key) INCLUDE (state)`);
    const { ready, idempotency } = createStores(pool, { schema });
    await ready();
    expect(await idempotency.claim("k", claim)).toMatchObject({ status: "acquired" });
    expect(await postgresMissingKeys(pool, { schema: `${schema}_none` })).toBeUndefined();
  });
});
