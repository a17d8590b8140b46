import { mysqlMigration, mysqlSchemaVersion as version } from "@countersign/store-mysql";
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from "@jest/globals";
import { createPool, type Pool, type RowDataPacket } from "mysql2/promise";
import { describeOnMysql, isolatedName, mysqlUrl } from "@countersign/test-support/servers/engines.ts";
import { startTcpProxy } from "@countersign/test-support/servers/tcp-proxy.ts";
import { mysqlEngine } from "../src/operator/mysql-store.ts";
import { readTarget } from "../src/operator/store-target.ts";
import { run, spawnCli } from "./cli-bench.ts";
import { dropMysqlTables } from "./operator-bench.ts";

const url = mysqlUrl ?? "";

describeOnMysql("countersign migrate on MariaDB", () => {
  let pool: Pool;
  let table = "";

  beforeAll(() => {
    pool = createPool({ uri: url, connectionLimit: 3, multipleStatements: true });
  });
  beforeEach(() => {
    table = isolatedName("mig");
  });
  afterEach(() => dropMysqlTables((sql) => pool.query(sql), table));
  afterAll(() => pool.end());

  const flags = () => ["--store-url", url, "--table", table];
  const tables = async (): Promise<string[]> => {
    const query =
      "SELECT table_name AS name FROM information_schema.tables WHERE table_schema = DATABASE() AND table_name LIKE ? ORDER BY 1";
    const [rows] = await pool.query<RowDataPacket[]>(query, [`${table}\\_%`]);
    return rows.map((row) => String(row["name"]).slice(table.length));
  };
  const allTables = [
    "_answers",
    "_idempotency",
    "_lanes",
    "_newest",
    "_nonces",
    "_queues",
    "_schema",
    "_tasks",
  ];

  test("creates the tables, says so, and changes nothing the next time", async () => {
    const said = ["created the tables", "nothing to do, the tables were there"];
    for (const words of said) {
      const { code, out, err } = await run(["migrate", ...flags()]);
      expect({ code, err }).toEqual({ code: 0, err: "" });
      expect(out).toMatch(
        new RegExp(`^mysql\\S* \\(tables ${table}_\\*\\): ${words}; schema version ${version}\n$`),
      );
      expect(await tables()).toEqual(allTables);
    }
    const { out } = await run(["migrate", ...flags(), "--json"]);
    expect(JSON.parse(out)).toEqual({ engine: "mysql", version, before: version });
  });

  test("takes a URL with mariadb, and says with --json that there were no tables", async () => {
    const other = url.replace(/^mysql:/, "mariadb:");
    const { out } = await run(["migrate", "--store-url", other, "--table", table, "--json"]);
    expect(JSON.parse(out)).toEqual({ engine: "mysql", version, before: null });
  });

  test("is what no other command proposes", async () => {
    for (const command of [["keys", "held"], ["keys", "list", "--state", "run"], ["prune"], ["inbox"]]) {
      const { code, out, err } = await run([...command, ...flags()]);
      expect({ code, out }).toEqual({ code: 1, out: "" });
      expect(err).toMatch(
        /^error: [^\n]*: there are no such tables: this looks like another database [^\n]*\n$/,
      );
      expect(err).not.toContain("migrate");
    }
    expect(await tables()).toEqual([]);
  });

  test("--print prints the SQL and does nothing", async () => {
    const { code, out } = await run(["migrate", ...flags(), "--print"]);
    expect({ code, out }).toEqual({ code: 0, out: mysqlMigration({ table }) });
    expect(await tables()).toEqual([]);
    await pool.query(out);
    await pool.query(out);
    expect((await run(["keys", "held", ...flags()])).code).toBe(0);
  });

  test("works once when four begin at once", async () => {
    const ended = await Promise.all(Array.from({ length: 4 }, () => run(["migrate", ...flags()])));
    expect(ended.map(({ code, err }) => ({ code, err }))).toEqual(
      Array.from({ length: 4 }, () => ({ code: 0, err: "" })),
    );
    expect(await tables()).toEqual(allTables);
  }, 30_000);

  test("a later release's tables end it with 1, and stay as they are", async () => {
    await run(["migrate", ...flags()]);
    await pool.query(`UPDATE ${table}_schema SET version = 99; DROP TABLE ${table}_answers`);
    const { code, err } = await run(["migrate", ...flags()]);
    expect(code).toBe(1);
    expect(err).toMatch(/^error: [^\n]*: the tables [^\n]*schema version 99[^\n]*upgrade[^\n]*\n$/);
    expect(await tables()).toEqual(allTables.slice(1));
    expect((await run(["keys", "held", ...flags()])).code).toBe(1);
  });

  test("a user who may do nothing, or has another password, ends it with 1 and one line", async () => {
    const user = isolatedName("u");
    await pool.query(`CREATE USER ${user} IDENTIFIED BY 's3cret'`);
    try {
      for (const password of ["s3cret", "an0ther"]) {
        const as = new URL(url);
        as.username = user;
        as.password = password;
        const { code, out, err } = await run(["migrate", "--store-url", as.href, "--table", table]);
        expect({ code, out }).toEqual({ code: 1, out: "" });
        expect(err).toMatch(/^error: [^\n]*denied[^\n]*\n$/);
        expect(err).not.toContain(password);
      }
      expect(await tables()).toEqual([]);
    } finally {
      await pool.query(`DROP USER ${user}`);
    }
  });

  test("tables that another connection keeps locked end the other commands with one line", async () => {
    await run(["migrate", ...flags()]);
    const blocker = await pool.getConnection();
    try {
      await blocker.query(`LOCK TABLES ${table}_schema WRITE`);
      const { code, out, err } = await spawnCli(["keys", "held", "--table", table], {
        env: { STORE_URL: url },
      });
      expect({ code, out }).toEqual({ code: 3, out: "" });
      expect(err).toMatch(/^error: \S+ cannot be reached: no answer within 5000 ms\n$/);
    } finally {
      await blocker.query("UNLOCK TABLES");
      blocker.release();
    }
  }, 30_000);

  test("a store closes within seconds although the server hangs", async () => {
    await run(["migrate", ...flags()]);
    const through = new URL(url);
    const proxy = await startTcpProxy(Number(through.port || 3306));
    through.port = String(proxy.port);
    try {
      const store = await mysqlEngine.open(readTarget({ storeUrl: through.href, table }), undefined);
      proxy.delay(60_000);
      const startedAt = performance.now();
      await store.close();
      expect(performance.now() - startedAt).toBeLessThan(10_000);
    } finally {
      await proxy.close();
    }
  }, 20_000);
});
