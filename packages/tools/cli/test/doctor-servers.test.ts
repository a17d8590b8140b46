import { describe, expect, test } from "@jest/globals";
import { doubtsOf, type Row } from "../src/doctor/findings.ts";
import { mysqlRows } from "../src/operator/mysql-store.ts";
import { postgresRows } from "../src/operator/postgres-store.ts";
import type { Fact } from "../src/operator/sql-engine.ts";
import { run } from "./cli-bench.ts";
import type { Report } from "./doctor-bench.ts";
import { flagsOf, sqlServers } from "./sql-places.ts";

/** Of the tables that this release makes. */
const versions: Readonly<Record<string, number>> = { PostgreSQL: 3, MariaDB: 3 };

/** What becomes of the tables, and what the doctor then says about them. */
const steps: Readonly<
  Record<string, (prefix: string) => readonly (readonly [sql: string, ids: string[]])[]>
> = {
  PostgreSQL: (prefix) => [
    [`UPDATE ${prefix}schema SET version = 0, oldest = 0`, ["migration-pending"]],
    [`UPDATE ${prefix}schema SET version = 4, oldest = 4`, ["tables-newer"]],
    [`UPDATE ${prefix}schema SET oldest = 3`, []],
    [`UPDATE ${prefix}schema SET oldest = NULL`, ["tables-newer"]],
    [`UPDATE ${prefix}schema SET version = 3`, []],
    [`ALTER TABLE ${prefix}answers RENAME TO gone`, ["tables-refused"]],
    [`ALTER TABLE ${prefix.replace(/\..*/, "")}.gone RENAME TO countersign_answers`, []],
    [`ALTER TABLE ${prefix}nonces SET UNLOGGED`, ["tables-unlogged"]],
    [`ALTER TABLE ${prefix}nonces SET LOGGED`, []],
    [`ALTER TABLE ${prefix}nonces DROP CONSTRAINT countersign_nonces_pkey`, ["tables-without-key"]],
  ],
  MariaDB: (prefix) => [
    [`UPDATE ${prefix}schema SET version = 0`, ["migration-pending"]],
    [`UPDATE ${prefix}schema SET version = 4`, ["tables-newer"]],
    [`ALTER TABLE ${prefix}schema ADD COLUMN oldest INT DEFAULT 3`, []],
    [`UPDATE ${prefix}schema SET version = 3`, []],
    [`RENAME TABLE ${prefix}answers TO ${prefix}gone`, ["tables-refused"]],
    [`RENAME TABLE ${prefix}gone TO ${prefix}answers`, []],
    [`ALTER TABLE ${prefix}nonces DROP PRIMARY KEY`, ["tables-refused"]],
  ],
};

for (const server of sqlServers) {
  server.describe(`countersign doctor on ${server.name}`, () => {
    test("knows that tables are missing, of another release, or have lost something", async () => {
      const place = server.open();
      const flags = flagsOf(server, place);
      // What the tests' own server is set to is not the subject.
      const found = async () =>
        (JSON.parse((await run(["doctor", ...flags, "--json"])).out) as Report).findings.filter(({ id }) =>
          /^(?:tables|migration|keys)/.test(id),
        );
      const ids = async () => (await found()).map(({ id }) => id);
      try {
        expect(await ids()).toEqual(["tables-missing"]);
        await run(["migrate", ...flags]);
        expect(await ids()).toEqual([]);
        expect(server.says.version).toBe(versions[server.name]);
        for (const [sql, said] of steps[server.name]?.(place.prefix) ?? []) {
          await place.query(sql);
          expect(await ids()).toEqual(said);
        }
        expect((await found())[0]?.message).toMatch(
          /^(?:the table \S+ has lost its|tables have lost their) primary key.* ALTER TABLE /,
        );
        const migrated = await run(["migrate", ...flags]);
        expect(migrated).toMatchObject({ code: 1, err: expect.stringContaining("ADD PRIMARY KEY (digest)") });
      } finally {
        await place.close();
      }
    });
  });
}

function idsOf(rows: readonly Row<Fact>[], facts: Readonly<Record<string, string>>): string[] {
  return doubtsOf(rows, (name) => facts[name] ?? "unknown").map(([id]) => id);
}

describe("postgresRows", () => {
  const good = { version: "160002", encoding: "UTF8", fsync: "on", full_page_writes: "on" };
  const engine = "PostgreSQL 16.2 (Debian 16.2-1) on x86_64-pc-linux-gnu, 64-bit";
  const others = { engine, synchronous_commit: "on", standby: "false", unlogged: "0" };

  test.each<[Readonly<Record<string, string>>, string[]]>([
    [{}, []],
    [{ fsync: "off" }, ["postgres-fsync"]],
    [{ full_page_writes: "off" }, ["postgres-full-page-writes"]],
    [{ synchronous_commit: "off" }, ["postgres-synchronous-commit"]],
    [{ synchronous_commit: "local" }, []],
    [{ standby: "true" }, ["postgres-standby"]],
    [{ encoding: "LATIN1" }, ["postgres-encoding"]],
    [{ version: "120015" }, ["postgres-old"]],
    [{ engine: "PostgreSQL 15.2-YB-2024.2.3.0-b0 on x86_64-pc-linux-gnu, 64-bit" }, ["postgres-other"]],
    [{ unlogged: "1" }, ["tables-unlogged"]],
  ])("of %p", (difference, ids) => {
    expect(idsOf(postgresRows, { ...good, ...others, ...difference })).toEqual(ids);
  });
});

describe("mysqlRows", () => {
  const good = { version: "10.11.6-MariaDB-0", flushed: "1", has_binlog: "0", synced: "0", read_only: "0" };

  test.each<[Readonly<Record<string, string>>, string[]]>([
    [{}, []],
    [{ version: "11.4.2-MariaDB-log" }, []],
    [{ version: "8.0.36" }, []],
    [{ version: "9.7.4" }, []],
    [{ version: "5.7.44-log" }, ["mysql-old"]],
    [{ version: "8.0.11-TiDB-v8.5.0" }, ["mysql-other"]],
    [{ version: "10.5.23-MariaDB" }, ["mysql-old"]],
    [{ version: "10.6.0-MariaDB" }, []],
    [{ read_only: "1" }, ["mysql-read-only"]],
    [{ flushed: "2" }, ["mysql-flush"]],
    [{ flushed: "3" }, []],
    [{ has_binlog: "1" }, ["mysql-binlog"]],
    [{ has_binlog: "1", synced: "1" }, []],
  ])("of %p", (difference, ids) => {
    expect(idsOf(mysqlRows, { ...good, ...difference })).toEqual(ids);
  });
});
