import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { mysqlMigration, postgresMigration, sqliteMigration } from "@countersign/store-sql";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "@jest/globals";
import { Pool } from "pg";
import { isOnMysqlAlone, isWhole } from "@countersign/test-support/runs/share.ts";
import { describeOnPostgres, isolatedName, postgresUrl } from "@countersign/test-support/servers/engines.ts";
import { startTcpProxy } from "@countersign/test-support/servers/tcp-proxy.ts";
import { startPgBouncer } from "@countersign/test-support/servers/pgbouncer.ts";
import { readTarget } from "../src/operator/store-target.ts";
import { builtCli, expectOneLine, run, spawnCli } from "./cli-bench.ts";
import { flagsOf, sqlServers, tableNames, type Place } from "./sql-places.ts";
import { eventually } from "@countersign/test-support/runs/eventually.ts";

const url = postgresUrl ?? "";

const bouncer = postgresUrl === undefined ? undefined : await startPgBouncer(postgresUrl);
afterAll(() => bouncer?.close());
// The start has said loudly that there is no PgBouncer, and fails with CI=true.
const describeOnBouncer = bouncer === undefined ? describe.skip : describe;

const started: ChildProcess[] = [];
afterEach(() => {
  for (const child of started.splice(0)) child.kill("SIGKILL");
});

/** The built command as a process of its own. */
function start(args: readonly string[]): {
  child: ChildProcess;
  ended: Promise<{ code: unknown; err: string }>;
} {
  const env = { ...process.env, FORCE_COLOR: undefined, NO_COLOR: undefined };
  const child = spawn(process.execPath, [builtCli, "migrate", ...args], { env });
  started.push(child);
  let err = "";
  child.stderr.on("data", (chunk: Buffer) => (err += chunk.toString()));
  return { child, ended: once(child, "close").then(([code]) => ({ code: code as unknown, err })) };
}

// What is said hangs on no server: `npm test` asks PostgreSQL alone.
const usual = isOnMysqlAlone ? "MariaDB" : "PostgreSQL";
for (const server of sqlServers.filter(({ name }) => isWhole || name === usual)) {
  server.describe(`countersign migrate on ${server.name}`, () => {
    let place: Place;
    let flags: readonly string[];
    let allTables: readonly string[];
    beforeEach(() => {
      place = server.open();
      flags = flagsOf(server, place);
      allTables = tableNames.map((name) => `${place.prefix}${name}`.replace(/^.*\./, ""));
    });
    afterEach(() => place.close());

    const migrate = (...more: readonly string[]) => run(["migrate", ...flags, ...more]);
    const held = () => run(["keys", "held", ...flags]);

    test("creates the tables, says so, and changes nothing the next time", async () => {
      for (const words of ["created the tables", "nothing to do, the tables were there"]) {
        const { code, out, err } = await migrate();
        expect({ code, err }).toEqual({ code: 0, err: "" });
        const [scheme] = server.url.split(":");
        const { version } = server.says;
        expect(out).toMatch(
          new RegExp(`^${scheme}\\S* \\(tables ${place.shown}\\): ${words}; schema version ${version}\n$`),
        );
        expect(await place.tables()).toEqual(allTables);
      }
    });

    test("creates tables that are missing, and names them", async () => {
      await migrate();
      const lost = allTables.filter((name) => /_(?:answers|tasks)$/.test(name));
      const lose = () => place.query(`DROP TABLE ${place.prefix}answers, ${place.prefix}tasks`);
      await lose();
      const { code, err } = await held();
      expect({ code, named: lost.every((name) => err.includes(name)) }).toEqual({ code: 1, named: true });
      expect((await migrate()).out).toContain(`: created what was missing: ${lost.join(", ")}; schema`);
      await lose();
      const { out } = await migrate("--json");
      expect(JSON.parse(out)).toEqual({ ...server.says, before: server.says.version, created: lost });
      expect(await place.tables()).toEqual(allTables);
    });

    test("says with --json which version the tables have now, and had before", async () => {
      for (const before of [null, server.says.version])
        expect(JSON.parse((await migrate("--json")).out)).toEqual({ ...server.says, before });
    });

    test("is what no other command proposes where the tables of a platform are elsewhere", async () => {
      for (const command of ["keys held", "keys list --state running", "prune", "inbox"]) {
        const { code, out, err } = await run([...command.split(" "), ...flags]);
        expect({ code, out }).toEqual({ code: 1, out: "" });
        expect(err).toMatch(
          new RegExp(
            `^error: \\S+ \\(tables ${place.shown}\\): there are no such tables: this looks like another database [^\n]*--table[^\n]*\n$`,
          ),
        );
        expect(err).not.toContain("migrate");
      }
      expect(await place.tables()).toEqual([]);
    });

    test("works once when four processes begin at once", async () => {
      const ended = await Promise.all(Array.from({ length: 4 }, () => start(flags).ended));
      expect(ended).toEqual(Array.from({ length: 4 }, () => ({ code: 0, err: "" })));
      expect(await place.tables()).toEqual(allTables);
    });

    test("tables that another connection keeps locked end the other commands with one line", async () => {
      await migrate();
      const unlock = await place.lock(`${place.prefix}schema`);
      try {
        const { code, out, err } = await spawnCli(["keys", "held", ...flags], { env: {} });
        expect({ code, out }).toEqual({ code: 3, out: "" });
        expect(err).toMatch(/^error: \S+ cannot be reached: no answer within 5000 ms\n$/);
      } finally {
        await unlock();
      }
    });

    test("a store closes within seconds although the server hangs", async () => {
      await migrate();
      const through = new URL(server.url);
      const proxy = await startTcpProxy(Number(through.port || server.port));
      through.port = String(proxy.port);
      try {
        const target = readTarget({ storeUrl: through.href, ...place.flags });
        const store = await server.engine.open(target, {});
        proxy.delay(60_000);
        const startedAt = performance.now();
        await store.close();
        expect(performance.now() - startedAt).toBeLessThan(10_000);
      } finally {
        await proxy.close();
      }
    });

    test("--print prints the SQL and does nothing", async () => {
      expect(await migrate("--print")).toMatchObject({ code: 0, out: place.migration });
      expect(await place.tables()).toEqual([]);
      await place.query(place.migration);
      await place.query(place.migration);
      expect((await held()).code).toBe(0);
    });

    test("a later release's tables end it with 1, and stay as they are", async () => {
      await migrate();
      await place.query(`UPDATE ${place.prefix}schema SET ${server.later}`);
      await place.query(`DROP TABLE ${place.prefix}answers`);
      const { code, err } = await migrate();
      expect(code).toBe(1);
      expect(err).toMatch(/^error: [^\n]*: the tables [^\n]*schema version 99[^\n]*upgrade[^\n]*\n$/);
      expect(await place.tables()).toEqual(allTables.slice(1));
      expect((await held()).code).toBe(1);
    });

    test("an account that may do nothing, or has another password, ends it with 1 and one line", async () => {
      const user = isolatedName("u");
      await place.query(server.createUser(user));
      try {
        for (const password of ["s3cret", "an0ther"]) {
          const as = Object.assign(new URL(server.url), { username: user, password });
          const { code, out, err } = await migrate("--store-url", as.href);
          expect({ code, out }).toEqual({ code: 1, out: "" });
          expect(err).toMatch(/^error: [^\n]*(?:denied|may not create|authentication)[^\n]*\n$/);
          expect(err).not.toContain(password);
        }
        expect(await place.tables()).toEqual([]);
      } finally {
        await place.query(`DROP USER ${user}`);
      }
    });
  });
}

describeOnPostgres("countersign migrate on PostgreSQL alone", () => {
  let pool: Pool;
  let schema = "";
  let flags: readonly string[];
  beforeAll(() => {
    pool = new Pool({ connectionString: url, max: 3 });
  });
  beforeEach(() => {
    schema = isolatedName("mig");
    flags = ["--store-url", url, "--schema", schema];
  });
  afterEach(() => pool.query(`DROP SCHEMA IF EXISTS ${schema} CASCADE`));
  afterAll(() => pool.end());

  const tablesOf = (prefix: string) => tableNames.map((name) => `${prefix}_${name}`);
  const tables = async (): Promise<string[]> => {
    const query = `SELECT relname FROM pg_class WHERE relkind = 'r' AND relnamespace = $1::regnamespace ORDER BY relname COLLATE "C"`;
    return (await pool.query<{ relname: string }>(query, [schema])).rows.map(({ relname }) => relname);
  };

  test("creates a table that a dump has left out, and names it", async () => {
    await run(["migrate", ...flags]);
    await pool.query(`DROP TABLE ${schema}.countersign_lanes`);
    const { code, err } = await run(["keys", "held", ...flags]);
    expect({ code, named: err.includes('"countersign_lanes"') }).toEqual({ code: 1, named: true });
    const { out } = await run(["migrate", ...flags]);
    expect(out).toContain(": created what was missing: countersign_lanes; schema");
    expect((await run(["keys", "held", ...flags])).code).toBe(0);
  });

  test("takes the names of schema and tables", async () => {
    const named = [...flags, "--table", "Payouts"];
    expect((await run(["migrate", ...flags])).code).toBe(0);
    const { out } = await run(["migrate", ...named, "--json"]);
    expect(JSON.parse(out)).toEqual({ engine: "postgres", version: 3, before: null });
    expect(await tables()).toEqual([...tablesOf("Payouts"), ...tablesOf("countersign")]);
    expect((await run(["keys", "held", ...named])).code).toBe(0);
    expect((await run(["keys", "held", ...flags, "--table", "payouts"])).code).toBe(1);
  });

  test("other commands name the tables that are in the database", async () => {
    // A database of its own: that of the tests has many schemas.
    const own = isolatedName("places");
    await pool.query(`CREATE DATABASE ${own}`);
    try {
      const there = new URL(url);
      there.pathname = `/${own}`;
      const at = ["--store-url", there.href];
      expect((await run(["keys", "held", ...at])).err).toMatch(/; none is in this database\n$/);
      for (const place of ["pay.a", "other.b"].map((each) => each.split("."))) {
        const [to = "", table = ""] = place;
        await run(["migrate", ...at, "--schema", to, "--table", table]);
      }
      expect((await run(["keys", "held", ...at])).err).toMatch(
        /; in this database are other\.b_\*, pay\.a_\*\n$/,
      );
      const empty = ["--schema", "pay", "--table", "a", "--quiet"];
      const { code, out, err } = await run(["keys", "held", ...at, ...empty]);
      expect({ code, out }).toEqual({ code: 0, out: "" });
      expect(err).toMatch(
        /^note: .*pay\.a_\*\): no key at all; such tables are also at other\.b_\*; if those/,
      );
      const key = ["restore", "payout:op.from.to", "--note", "TICKET-1", "--yes", "--by", "me"];
      expect((await run(["keys", ...key, ...at, ...empty.slice(0, 4)])).code).toBe(0);
      expect(await run(["keys", "held", ...at, ...empty])).toMatchObject({ code: 0, out: "", err: "" });
    } finally {
      await pool.query(`DROP DATABASE ${own}`);
    }
  });

  test.each(["SIGKILL", "SIGINT"] as const)(
    "works when it is repeated after %s has ended it",
    async (signal) => {
      await pool.query(`CREATE SCHEMA ${schema}`);
      const blocker = await pool.connect();
      try {
        // The last table is another transaction's: the migration has made all others, and waits.
        await blocker.query(`BEGIN; CREATE TABLE ${schema}.countersign_nonces (a int)`);
        const { child, ended } = start(flags);
        const waiting = `SELECT FROM pg_stat_activity WHERE application_name = 'countersign' AND wait_event_type = 'Lock'
        AND query LIKE '%' || $1 || '%'`;
        await eventually(async () => {
          if (child.exitCode !== null) throw new Error("the migration did not wait");
          return (await pool.query(waiting, [schema])).rowCount !== 0;
        });
        child.kill(signal);
        await ended;
      } finally {
        await blocker.query("ROLLBACK");
        blocker.release();
      }
      expect((await run(["migrate", ...flags])).code).toBe(0);
      expect(await tables()).toEqual(tablesOf("countersign"));
      expect((await run(["keys", "held", ...flags])).code).toBe(0);
    },
  );

  test("leaves a later release's tables that take this one beside them", async () => {
    await run(["migrate", ...flags]);
    await pool.query(`UPDATE ${schema}.countersign_schema SET version = 99`);
    const { code, out } = await run(["migrate", ...flags]);
    expect({ code, out }).toEqual({ code: 0, out: expect.stringContaining("nothing to do") });
    expect(out).toContain("; schema version 99\n");
    expect((await run(["keys", "held", ...flags])).code).toBe(0);
  });
});

describeOnBouncer("the operator's commands through PgBouncer in transaction mode", () => {
  test("migrate, list, resolve and prune", async () => {
    const schema = isolatedName("bouncer");
    const flags = ["--store-url", bouncer?.url ?? "", "--schema", schema];
    const pool = new Pool({ connectionString: url, max: 1 });
    try {
      expect(await run(["migrate", ...flags])).toMatchObject({ code: 0, err: "" });
      await pool.query(
        `INSERT INTO ${schema}.countersign_idempotency VALUES ('key', 'held', 't', 1, 'f', 'why', 'hold', now(), 1)`,
      );
      expect(await run(["keys", "held", ...flags])).toMatchObject({
        out: expect.stringMatching(/^ {2}why +why$/m),
      });
      const resolve = ["keys", "resolve", "key", "--as", "done", "--yes", ...flags];
      expect(await run(resolve)).toMatchObject({ code: 0, err: "" });
      expect(await run(["prune", ...flags])).toMatchObject({ code: 0, err: "" });
    } finally {
      await pool.query(`DROP SCHEMA IF EXISTS ${schema} CASCADE`);
      await pool.end();
    }
  });
});

describe("countersign migrate", () => {
  test.each([
    ["sqlite:missing.db", "sqlite", /missing\.db: nothing to migrate; the store creates its tables when/],
    ["redis://127.0.0.1:1", "redis", /^redis:\/\/127\.0\.0\.1:1: nothing to migrate; Redis has no tables/],
  ])("has nothing to do for %s", async (store, engine, line) => {
    expect(await run(["migrate", "--store-url", store])).toMatchObject({
      code: 0,
      out: expect.stringMatching(line),
    });
    const { out } = await run(["migrate", "--store-url", store, "--json"]);
    expect(JSON.parse(out)).toEqual({ engine });
    expect(existsSync("missing.db")).toBe(false);
  });

  test.each<[string, readonly string[], string]>([
    ["no store", [], postgresMigration()],
    ["names alone", ["--schema", "s", "--table", "t"], postgresMigration({ schema: "s", table: "t" })],
    ["SQLite", ["--store-url", "sqlite:missing.db", "--table", "t"], sqliteMigration("t")],
    ["MariaDB", ["--store-url", "mysql://h/d", "--table", "t"], mysqlMigration({ table: "t" })],
  ])("--print prints the SQL for %s", async (_name, flags, sql) => {
    expect(await run(["migrate", "--print", ...flags])).toEqual({ code: 0, out: sql, err: "" });
  });

  test.each<[string, string, RegExp]>([
    ["no store", "", /required option '--store-url <url>' not specified/],
    ["an empty store", "--store-url=", /--store-url: expected sqlite:<path>, postgres:/],
    ["a schema of SQLite", "--store-url sqlite:p.db --schema s", /--schema: means nothing for sqlite:/],
    ["tables of Redis", "--store-url redis://h --table t", /--table: means nothing for redis:\/\/h/],
    ["a prefix", "--store-url redis://h --prefix p", /unknown option '--prefix'/],
    ["an empty schema", "--store-url postgres://h/d --schema=", /--schema must be 1 to 63/],
    ["a long table", `--store-url postgres://h/d --table ${"t".repeat(41)}`, /--table must be 1 to 40/],
    ["SQL of Redis", "--store-url redis://h --print", /--print: Redis has no tables/],
    ["a bad table of SQLite", "--store-url sqlite:p.db --table=a\tb --print", /--table must be/],
  ])("%s ends with 2 and one line", async (_name, flags, line) => {
    expectOneLine(await run(["migrate", ...flags.split(" ").filter(Boolean)]), 2, line);
  });
});
