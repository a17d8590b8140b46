import {
  type SqliteDatabase,
  type SqliteStoresOptions,
  createAnswers,
  createStores,
  sqliteMigration,
  sqliteSchemaVersion,
} from "@countersign/store-sql";
import { afterEach, describe, expect, test } from "@jest/globals";
import { connect, openStores, dayMs, drivers, temporaryFile } from "./connections.ts";

const claim = { token: "a", fingerprint: "f", leaseMs: 1000, recovery: "hold" } as const;

/** A connection that reads one query as the test wants it: a database that does not do as it was told. */
function reading(
  database: SqliteDatabase,
  query: RegExp,
  row: Record<string, unknown> | undefined,
): SqliteDatabase {
  return {
    exec: (sql) => database.exec(sql),
    prepare: (sql) => {
      const statement = database.prepare(sql);
      if (!query.test(sql)) return statement;
      return { run: statement.run.bind(statement), all: statement.all.bind(statement), get: () => row };
    },
    get inTransaction() {
      return database.inTransaction ?? database.isTransaction;
    },
  };
}

describe("createStores() options", () => {
  test.each<[string, unknown, RegExp]>([
    ["no options", undefined, /options must be an object/],
    ["no database", {}, /option database/],
    ["a path as database", { database: "platform.db" }, /option database/],
    ["null as database", { database: null }, /option database/],
    ["a misspelt option", { retention: 1 }, /unknown option retention/],
    [
      "the database itself",
      { prepare: () => undefined, exec: () => undefined },
      /write \{ database: … \}, in braces/,
    ],
    ["a table that is no identifier", { table: 'x"; DROP TABLE payouts; --' }, /option table/],
    ["an empty table", { table: "" }, /option table/],
    ["a table that begins with a digit", { table: "1st" }, /option table/],
    ["a table of SQLite itself", { table: "SQLite_x" }, /option table/],
    ["a table with a line break", { table: "x\n" }, /option table/],
    ["a table of 64 characters", { table: "x".repeat(64) }, /option table/],
    ["a retention below a day", { retentionMs: dayMs - 1 }, /option retentionMs/],
    ["a retention that is text", { retentionMs: "90d" }, /option retentionMs .* got a string/],
    ["a retention of tasks below 72 hours", { taskRetentionMs: 3 * dayMs - 1 }, /option taskRetentionMs/],
    ["a negative interval", { pruneIntervalMs: -1 }, /option pruneIntervalMs/],
    ["an interval above a day", { pruneIntervalMs: dayMs + 1 }, /option pruneIntervalMs/],
    ["a clock that is a number", { now: 5 }, /option now/],
    ["a word for allowInProduction", { allowInProduction: "yes" }, /option allowInProduction/],
  ])("refuses %s", (_name, options, message) => {
    const given = options === undefined || hasDatabase(options) ? options : withDatabase(options);
    const create = () => createStores(given as SqliteStoresOptions);
    expect(create).toThrow(TypeError);
    expect(create).toThrow(message);
    expect(create).toThrow(expect.objectContaining({ factory: "createStores" }));
  });

  test("refuses a bad table in the migration too", () => {
    expect(() => sqliteMigration("no spaces")).toThrow(
      expect.objectContaining({ name: "TypeError", factory: "sqliteMigration", option: "table" }),
    );
  });
});

function hasDatabase(options: unknown): boolean {
  return (
    typeof options === "object" &&
    options !== null &&
    ("database" in options || Object.keys(options).length === 0)
  );
}

function withDatabase(options: unknown): unknown {
  return { database: connect(":memory:"), ...(options as object) };
}

describe.each(drivers)("createStores(), %s", (_name, open) => {
  const environment = process.env["NODE_ENV"];

  afterEach(() => {
    process.env["NODE_ENV"] = environment;
  });

  test("makes a file durable: WAL, synchronous FULL, five seconds of patience", () => {
    const database = connect(temporaryFile(), open);
    database.exec("PRAGMA synchronous = OFF");
    openStores(database);
    expect(database.prepare("PRAGMA journal_mode").get()).toMatchObject({ journal_mode: "wal" });
    expect(database.prepare("PRAGMA synchronous").get()).toMatchObject({ synchronous: 2 });
    expect(database.prepare("PRAGMA busy_timeout").get()).toMatchObject({ timeout: 5000 });
  });

  describe("on tables of another release", () => {
    const later = sqliteSchemaVersion + 1;

    /** Without an index that this release would make. */
    function tablesOf(version: number, oldest?: number) {
      const file = temporaryFile();
      const database = connect(file, open);
      openStores(database);
      database.exec("DROP INDEX countersign_nonces_until");
      if (oldest !== undefined) {
        database.exec(`ALTER TABLE countersign_schema ADD COLUMN oldest INTEGER DEFAULT ${oldest}`);
      }
      database.exec(`UPDATE countersign_schema SET version = ${version}`);
      const left = () => [
        database.prepare("SELECT version FROM countersign_schema").get(),
        database.prepare("SELECT name FROM sqlite_schema WHERE name = 'countersign_nonces_until'").all(),
      ];
      return { left, reopened: () => openStores(connect(file, open)) };
    }

    test("that takes this one beside it works, and leaves them as they are", () => {
      const { left, reopened } = tablesOf(later, sqliteSchemaVersion);
      expect(reopened().idempotency.claim("k", claim)).toMatchObject({ status: "acquired" });
      expect(left()).toMatchObject([{ version: later }, []]);
    });

    test("goes on serving a process of this one that has them open, and one that opens them", async () => {
      const file = temporaryFile();
      const running = openStores(connect(file, open));
      running.idempotency.claim("k", claim);
      const migrating = connect(file, open);
      // As a later release may do: a column without a default, and a table.
      migrating.exec(`BEGIN IMMEDIATE;
        ALTER TABLE countersign_idempotency ADD COLUMN later TEXT;
        CREATE TABLE countersign_later (id INTEGER PRIMARY KEY) STRICT;
        ALTER TABLE countersign_schema ADD COLUMN oldest INTEGER;
        UPDATE countersign_schema SET version = ${later}, oldest = ${sqliteSchemaVersion};
        UPDATE countersign_idempotency SET later = 'kept';
        COMMIT`);
      const restarted = openStores(connect(file, open));
      expect(restarted.idempotency.read("k")).toMatchObject({ state: "running", token: claim.token });
      expect(running.idempotency.complete("k", claim.token)).toBe("ok");
      for (const { transactions, work } of [running, restarted]) {
        await transactions.run((tx) => void work.add(tx, "q", [{ id: "a", body: "b" }]));
        expect(await work.read("q", "a")).toMatchObject({ state: "open", body: "b" });
      }
      const kept = migrating.prepare("SELECT state, later FROM countersign_idempotency").all();
      expect(kept).toMatchObject([{ state: "done", later: "kept" }]);
    });

    test.each([
      ["a later one that takes none beside it", later, later],
      ["a later one that does not say", later, undefined],
      ["none", 0, 0],
    ])("refuses those of %s, and leaves them as they are", (_case, version, oldest) => {
      const { left, reopened } = tablesOf(version, oldest);
      expect(reopened).toThrow(`schema version ${version}, this release needs ${sqliteSchemaVersion}`);
      expect(left()).toMatchObject([{ version }, []]);
    });
  });

  test("keeps a stricter setting of the connection", () => {
    const database = connect(temporaryFile(), open);
    database.exec("PRAGMA synchronous = EXTRA");
    database.exec("PRAGMA busy_timeout = 9000");
    openStores(database);
    expect(database.prepare("PRAGMA synchronous").get()).toMatchObject({ synchronous: 3 });
    expect(database.prepare("PRAGMA busy_timeout").get()).toMatchObject({ timeout: 9000 });
  });

  test.each<[string, RegExp, Record<string, unknown> | undefined, RegExp]>([
    ["synchronous stays NORMAL", /^PRAGMA synchronous/, { synchronous: 1 }, /synchronous is 1/],
    [
      "the journal stays a rollback journal",
      /^PRAGMA journal_mode/,
      { journal_mode: "delete" },
      /stays delete/,
    ],
    [
      "the journal of a file is in memory",
      /^PRAGMA journal_mode/,
      { journal_mode: "memory" },
      /stays memory/,
    ],
    ["the busy timeout stays short", /^PRAGMA busy_timeout/, { timeout: 4999 }, /busy_timeout stays below/],
    [
      "SQLite has no milliseconds",
      /sqlite_version/,
      { version: "3.41.2", clock: "null" },
      /3\.41\.2 is too old/,
    ],
    ["the driver answers no version", /^SELECT \* FROM "main"."countersign_schema"/, {}, /no number/],
    ["the driver answers nothing", /^PRAGMA synchronous/, undefined, /no row/],
    ["the driver answers text for a number", /^PRAGMA synchronous/, { synchronous: "2" }, /no number/],
  ])("refuses a database where %s", (_case, query, row, message) => {
    const file = temporaryFile();
    openStores(connect(file, open));
    const database = reading(connect(file, open), query, row);
    expect(() => openStores(database)).toThrow(message);
  });

  test.each([
    ["idempotency", "key"],
    ["nonces", "scope, nonce"],
    ["answers", "token"],
  ])("refuses a table of %s that has lost its primary key, and tells what mends it", (name, columns) => {
    const database = connect(temporaryFile(), open);
    openStores(database);
    createAnswers({ database, pruneIntervalMs: 0 }).close();
    const table = `countersign_${name}`;
    database.exec(
      `CREATE TABLE copy AS SELECT * FROM ${table}; DROP TABLE ${table}; ALTER TABLE copy RENAME TO ${table}`,
    );
    const create = () => {
      openStores(database);
      createAnswers({ database, pruneIntervalMs: 0 }).close();
    };
    const remedy = `CREATE UNIQUE INDEX "main"."${table}_key" ON "${table}" (${columns})`;
    expect(create).toThrow(`the table ${table} has lost its primary key; run: ${remedy}`);
    database.exec(remedy);
    create();
    expect(openStores(database).idempotency.claim("k", claim).status).toBe("acquired");
  });

  test("refuses a temporary database in production", () => {
    process.env["NODE_ENV"] = "production";
    expect(() => openStores(connect("", open))).toThrow(/journal_mode stays|allowInProduction/);
  });

  test("refuses a connection inside a transaction", () => {
    const database = connect(temporaryFile(), open);
    database.exec("BEGIN");
    expect(() => openStores(database)).toThrow(/transaction is open/);
    database.exec("ROLLBACK");
  });

  test("refuses a database in memory in production, unless told otherwise", () => {
    process.env["NODE_ENV"] = "production";
    const database = connect(":memory:", open);
    expect(() => openStores(database)).toThrow(/allowInProduction/);
    expect(openStores(database, { allowInProduction: true }).idempotency.claim("k", claim).status).toBe(
      "acquired",
    );
    expect(openStores(connect(temporaryFile(), open)).idempotency.claim("k", claim).status).toBe("acquired");
  });

  test("keeps stores of different tables apart, on tables made by the exported migration", () => {
    const database = connect(temporaryFile(), open);
    database.exec(sqliteMigration("payments"));
    database.exec(sqliteMigration("payments"));
    const payments = openStores(database, { table: "payments" });
    const refunds = openStores(database, { table: "refunds" });
    expect(payments.idempotency.claim("k", claim)).toEqual({ status: "acquired", fence: expect.any(Number) });
    expect(refunds.idempotency.claim("k", { ...claim, token: "b" })).toEqual({
      status: "acquired",
      fence: expect.any(Number),
    });
    const version = database.prepare("SELECT version FROM payments_schema").get();
    expect(version).toMatchObject({ version: sqliteSchemaVersion });
  });

  test.each([
    ["the default", undefined, 90 * dayMs],
    ["its option", 3 * dayMs, 3 * dayMs],
  ])("can be asked for the retention of a key: %s", (_case, retentionMs, expected) => {
    expect(openStores(connect(":memory:", open), { retentionMs }).idempotency.retentionMs).toBe(expected);
  });

  test("refuses every step inside a transaction of the caller and after close, which leaves the connection open", () => {
    const database = connect(temporaryFile(), open);
    const { idempotency, nonces, close } = openStores(database);
    database.exec("BEGIN");
    const calls: (() => unknown)[] = [
      () => idempotency.claim("k", claim),
      () => idempotency.read("k"),
      () => idempotency.heartbeat("k", "a", 1),
      () => idempotency.complete("k", "a"),
      () => idempotency.release("k", "a"),
      () => idempotency.hold("k", "a", "why"),
      () => idempotency.resolve("k", "done", { fence: 1 }),
      () => idempotency.list({ state: "held", limit: 1 }),
      () => idempotency.prune(),
      () => nonces.claim({ scope: "s", nonce: "n", token: "a", retainMs: 1 }),
      () => nonces.prune(),
    ];
    for (const call of calls) expect(call).toThrow(/transaction is open/);
    database.exec("ROLLBACK");
    expect(idempotency.read("k")).toBeUndefined();
    close();
    close();
    for (const call of calls) expect(call).toThrow(/closed/);
    expect(database.prepare("SELECT 1 AS one").get()).toMatchObject({ one: 1 });
  });

  test("throws on a connection that the app has closed, and leaves the process alone", async () => {
    const database = open(temporaryFile());
    const { idempotency, nonces, transactions } = openStores(database);
    database.close();
    const calls = [
      () => idempotency.claim("k", claim),
      () => idempotency.complete("k", "a"),
      () => idempotency.prune(),
      () => nonces.prune(),
    ];
    for (const call of calls) expect(call).toThrow(/closed|not open/);
    await expect(transactions.run(() => undefined)).rejects.toThrow(/closed|not open/);
  });

  test("refuses a row whose state is none of its own", () => {
    const database = connect(temporaryFile(), open);
    const { idempotency } = openStores(database);
    idempotency.claim("k", claim);
    database.exec("PRAGMA ignore_check_constraints = ON");
    database.exec("UPDATE countersign_idempotency SET state = 'paid'");
    expect(() => idempotency.claim("k", { ...claim, token: "b" })).toThrow(/unknown state/);
  });
});

test("works on libsql with integers as bigint", () => {
  const database = connect(temporaryFile());
  (database as unknown as { defaultSafeIntegers(): void }).defaultSafeIntegers();
  const { idempotency } = openStores(database);
  const fence: unknown = expect.any(Number);
  expect(idempotency.claim("k", claim)).toEqual({ status: "acquired", fence });
  expect(idempotency.read("k")).toMatchObject({ state: "running", fence, remainingMs: expect.any(Number) });
  expect(idempotency.complete("k", "a")).toBe("ok");
});
