import { fromMysql2 } from "@countersign/store-sql/mysql2";
import type { Database } from "@countersign/idempotency";
import type { Row } from "@countersign/idempotency/store";
import { createAnswers, createStores, migrate, mysqlSchemaVersion } from "@countersign/store-sql";
import { afterTest } from "@countersign/test-support/runs/after-test.ts";
import { describeOnMysql, isolatedName } from "@countersign/test-support/servers/engines.ts";
import { describe, expect, test } from "@jest/globals";
import { describeServerCheck } from "@countersign/test-support/runs/server-check.ts";
import type { Pool } from "mysql2/promise";
import { newKey, payOne } from "./transactions.ts";
import { dropping } from "./spare-tables.ts";
import { connectPool, openStores, createTables, newStores } from "./connections.ts";

type Settings = Partial<Record<keyof typeof sound, Row>>;

const claim = { token: "a", fingerprint: "f", leaseMs: 60_000, recovery: "hold" } as const;

const sound = {
  VERSION: { version: "10.11.19-MariaDB-0+deb12u1" },
  innodb_flush_log_at_trx_commit: { flushed: 1, has_binlog: 0, synced: 0, read_only: 0 },
  information_schema: { name: "countersign_nonces", engine: "InnoDB", primary_key: "digest" },
  countersign_schema: { version: mysqlSchemaVersion },
};

/** Answers the check's statements, each by a word in it. */
function serverWith(rows: Settings) {
  const asked: string[] = [];
  const answers: Record<string, Row> = { ...sound, ...rows };
  const database: Database<object> = {
    dialect: "mysql",
    library: "fake",
    run: () => Promise.reject(new Error("not asked for")),
    query: () => Promise.reject(new Error("not asked for")),
    change: () => Promise.reject(new Error("not asked for")),
    gateOf: () => undefined,
    alone(text) {
      asked.push(text);
      const word = Object.keys(answers).find((each) => text.includes(each));
      const row = word === undefined ? undefined : answers[word];
      return Promise.resolve(row === undefined ? [] : [row]);
    },
  };
  return { asked, database };
}

function storesOn(database: Database<object>) {
  const stores = createStores({ database, pruneIntervalMs: 0 });
  afterTest(() => stores.close());
  return stores;
}

const settings = sound.innodb_flush_log_at_trx_commit;

describeServerCheck<Settings>({
  guard: "createStores",
  code: "mysql-not-durable",
  statements: 4,
  serverWith,
  storesOn,
  refused: [
    ["is older than MySQL 8.0", { VERSION: { version: "5.7.44-log" } }, /MySQL 5\.7 is too old, 8\.0/],
    ["is TiDB", { VERSION: { version: "8.0.11-TiDB-v8.5.0" } }, /TiDB-v8\.5\.0, neither MySQL nor MariaDB/],
    ["is Vitess", { VERSION: { version: "8.0.40-Vitess" } }, /Vitess, neither MySQL nor MariaDB/],
    [
      "is PlanetScale",
      { VERSION: { version: "8.0.34-PlanetScale" } },
      /PlanetScale, neither MySQL nor MariaDB/,
    ],
    ["tells no version", { VERSION: { version: "unknown" } }, /unknown, neither MySQL nor MariaDB/],
    [
      "is older than 10.6",
      { VERSION: { version: "10.5.23-MariaDB-log" } },
      /MariaDB 10\.5 is too old, 10\.6/,
    ],
    [
      "is read-only",
      { innodb_flush_log_at_trx_commit: { ...settings, read_only: 1 } },
      /read-only; connect to the primary/,
    ],
    [
      "keeps a table in MyISAM",
      { information_schema: { ...sound.information_schema, engine: "MyISAM" } },
      /not InnoDB, .* ENGINE = InnoDB/,
    ],
    [
      "has a table without its key",
      { information_schema: { ...sound.information_schema, primary_key: null } },
      /lost its primary key; run: ALTER TABLE `countersign_nonces` ADD PRIMARY KEY \(digest\)/,
    ],
    [
      "has newer tables",
      { countersign_schema: { version: mysqlSchemaVersion + 1 } },
      /version 4, .* upgrade @countersign\/store-sql/,
    ],
    [
      "has newer tables that take no process of this version",
      { countersign_schema: { version: mysqlSchemaVersion + 1, oldest: mysqlSchemaVersion + 1 } },
      /version 4, .* upgrade @countersign\/store-sql/,
    ],
    [
      "has tables of no version",
      { countersign_schema: { version: 0 } },
      /version 0, .* run countersign migrate, or migrate\(\)/,
    ],
  ],
  noticed: [
    [
      "the log is not flushed",
      { innodb_flush_log_at_trx_commit: { ...settings, flushed: 2 } },
      /^innodb_flush_log_at_trx_commit is not 1: /,
    ],
    [
      "the binary log is not synced",
      { innodb_flush_log_at_trx_commit: { ...settings, has_binlog: 1 } },
      /^sync_binlog is not 1: /,
    ],
  ],
  inProduction: [
    { innodb_flush_log_at_trx_commit: { ...settings, flushed: 0 } },
    /run the server with innodb_flush_log_at_trx_commit = 1/,
  ],
});

describe("the options", () => {
  const { database } = serverWith({});

  test.each<[string, object, RegExp]>([
    ["no database", { database: undefined }, /option database must be made by .*fromMysql2\(pool\)/],
    ["a pool in its place", { database: { query() {} } }, /option database/],
    ["one of another dialect", { database: { ...database, dialect: "oracle" } }, /option database/],
    [
      "one without a number of changed rows",
      { database: { ...database, change: undefined } },
      /option database/,
    ],
    ["a prefix that needs more than quotes", { table: "a`b" }, /option table must be a letter/],
    ["a short retention", { retentionMs: 1_000 }, /option retentionMs/],
    ["a short one of tasks", { taskRetentionMs: 259_199_999 }, /option taskRetentionMs/],
    ["an unknown one", { schema: "s" }, /unknown option schema/],
  ])("are refused: %s", (_case, options, message) => {
    const create = () => createStores({ database, pruneIntervalMs: 0, ...options });
    expect(create).toThrow(TypeError);
    expect(create).toThrow(message);
    expect(create).toThrow(expect.objectContaining({ factory: "createStores" }));
    expect(() => createAnswers({ database, pruneIntervalMs: 0, ...options })).toThrow(/^createAnswers: /);
  });

  test("can be asked for the retention of a key", () => {
    const { idempotency, transactions } = storesOn(database);
    expect([idempotency.retentionMs, transactions.retentionMs]).toEqual([7_776_000_000, 7_776_000_000]);
    expect([idempotency.engine, transactions.engine, transactions.mode]).toEqual([
      "mariadb",
      "mariadb",
      "async",
    ]);
  });
});

describeOnMysql("ready() on a server", () => {
  test("finds settings and tables in order", async () => {
    const { ready } = await newStores();
    await ready();
  });

  test("finds that there are no tables, and tells what makes them", async () => {
    const { ready } = openStores(connectPool(), { table: "none_of_these" });
    await expect(ready()).rejects.toThrow(/the tables none_of_these_\* are missing; .* migrate\(\)/);
  });

  test.each([
    ["idempotency", "digest"],
    ["nonces", "digest"],
    ["answers", "digest"],
    ["schema", "id"],
    ["lanes", "digest"],
    ["tasks", "digest"],
    ["queues", "digest"],
    ["newest", "digest"],
  ])("finds the table of %s without its primary key, and tells what mends it", async (name, column) => {
    const pool = connectPool();
    const table = await createTables(pool);
    await pool.query(`ALTER TABLE ${table}_${name} DROP PRIMARY KEY`);
    const remedy = `ALTER TABLE \`${table}_${name}\` ADD PRIMARY KEY (${column})`;
    const stores = openStores(pool, { table });
    await expect(stores.idempotency.claim("k", claim)).rejects.toThrow(`run: ${remedy}`);
    await pool.query(remedy);
    expect(await stores.idempotency.claim("k", claim)).toMatchObject({ status: "acquired" });
  });

  test.each(["idempotency", "nonces", "lanes", "tasks", "queues", "newest", "answers"])(
    "finds that the table of %s alone is missing, and the migration makes it again",
    async (name) => {
      const pool = connectPool();
      const table = await createTables(pool);
      await pool.query(`DROP TABLE ${table}_${name}`);
      const { ready, nonces } = openStores(pool, { table });
      const use = { scope: "s", nonce: "n", token: "a", retainMs: 1 };
      const remedy = `missing tables: ${table}_${name}; run countersign migrate --table ${table}`;
      await expect(ready()).rejects.toThrow(remedy);
      await expect(nonces.claim(use)).rejects.toThrow(remedy);
      await migrate(fromMysql2(pool), { table });
      await ready();
      expect(await nonces.claim(use)).toBe("fresh");
    },
  );

  test("finds a table that knows no transactions", async () => {
    const pool = connectPool();
    const table = await createTables(pool);
    await pool.query(`ALTER TABLE ${table}_nonces ENGINE = MyISAM`);
    await expect(openStores(pool, { table }).ready()).rejects.toThrow(/not InnoDB/);
  });
});

/** As the migration of a later release leaves the version. */
async function becomeLater(
  pool: Pool,
  table: string,
  { version, oldest }: Record<"oldest" | "version", number>,
) {
  await pool.query(`ALTER TABLE ${table}_schema ADD COLUMN oldest INT`);
  await pool.query(`UPDATE ${table}_schema SET version = ?, oldest = ?`, [version, oldest]);
}

describeOnMysql("migrate()", () => {
  test("can be repeated, also side by side, and keeps what is there", async () => {
    const pool = connectPool();
    const table = await createTables(pool);
    const { idempotency } = openStores(pool, { table });
    await idempotency.claim("k", claim);
    const database = fromMysql2(pool);
    await Promise.all(Array.from({ length: 5 }, () => migrate(database, { table })));
    expect(await idempotency.read("k")).toMatchObject({ state: "running" });
  });

  test("that ended early is not taken for a whole one, and goes on", async () => {
    const table = isolatedName("half");
    const pool = connectPool();
    afterTest(() => pool.query(dropping(table)));
    const database = fromMysql2(pool);
    let sent = 0;
    let most = 0;
    const ending: typeof database = {
      ...database,
      alone: (...statement) =>
        ++sent > most ? Promise.reject(new Error("the line is lost")) : database.alone(...statement),
    };
    const { ready } = openStores(pool, { table });
    for (; ; most += 1) {
      sent = 0;
      // oxlint-disable-next-line no-await-in-loop -- each gets one statement further
      const [end] = await Promise.allSettled([migrate(ending, { table })]);
      if (end.status === "fulfilled") break;
      // oxlint-disable-next-line no-await-in-loop -- as above
      await expect(ready()).rejects.toThrow(/run countersign migrate|create them with: countersign migrate/);
    }
    expect(most).toBeGreaterThan(5);
    await ready();
  });

  test("leaves tables of a later release that takes this one beside it, and so do the stores", async () => {
    const pool = connectPool();
    const table = await createTables(pool);
    const running = openStores(pool, { table });
    await running.idempotency.claim("k", claim);
    const later = { version: mysqlSchemaVersion + 1, oldest: mysqlSchemaVersion };
    await pool.query(`ALTER TABLE ${table}_idempotency ADD COLUMN later VARBINARY(64)`);
    await becomeLater(pool, table, later);
    await pool.query(`DROP TABLE ${table}_answers`);
    await migrate(fromMysql2(pool), { table });
    const [versions] = await pool.query(`SELECT version, oldest FROM ${table}_schema`);
    expect(versions).toEqual([later]);
    const [rows] = await pool.query("SHOW TABLES LIKE ?", [`${table}_answers`]);
    expect(rows).toEqual([]);
    expect(await running.idempotency.complete("k", claim.token)).toBe("ok");
    const { ready, work, transactions } = openStores(pool, { table });
    await ready();
    expect(await payOne(running.transactions, newKey("paid"))).toBe("begun");
    expect(await payOne(transactions, newKey("paid"))).toBe("done");
    expect(await work.summaries()).toEqual([]);
  });

  test.each([
    [mysqlSchemaVersion + 1, /schema version 4, this release makes 3; upgrade/],
    [0, /schema version 0, this release makes 3; no release made such tables/],
  ])("refuses tables of version %s, and leaves them as they are", async (version, message) => {
    const pool = connectPool();
    const table = await createTables(pool);
    await becomeLater(pool, table, { version, oldest: version });
    await pool.query(`DROP TABLE ${table}_answers`);
    await expect(migrate(fromMysql2(pool), { table })).rejects.toThrow(message);
    const [versions] = await pool.query(`SELECT version FROM ${table}_schema`);
    expect(versions).toEqual([{ version }]);
    const [rows] = await pool.query("SHOW TABLES LIKE ?", [`${table}_answers`]);
    expect(rows).toEqual([]);
  });

  test("refuses a bad name, and what is no database on MariaDB", async () => {
    await expect(migrate(serverWith({}).database, { table: "no\nbreaks" })).rejects.toThrow(/option table/);
    // @ts-expect-error -- as a caller without types
    await expect(migrate({ execute() {}, query() {} })).rejects.toThrow(/^migrate: option database/);
  });
});
