import { mysqlSchemaVersion } from "@countersign/store-mysql";
import { describe, expect, test } from "@jest/globals";
import { createPool } from "mysql2/promise";
import { describeOnMysql, isolatedName, mysqlUrl } from "@countersign/test-support/servers/engines.ts";
import { doubtsOf } from "../src/doctor/findings.ts";
import { mysqlRows } from "../src/operator/mysql-store.ts";
import { run } from "./cli-bench.ts";
import type { Report } from "./doctor-bench.ts";
import { dropMysqlTables } from "./operator-bench.ts";

describeOnMysql("countersign doctor on MariaDB", () => {
  test("knows that tables are missing, old, new and refused by the stores, and counts what waits", async () => {
    const table = isolatedName("dr");
    const pool = createPool(mysqlUrl ?? "");
    const flags = ["--store-url", mysqlUrl ?? "", "--table", table];
    const diagnose = async () =>
      (JSON.parse((await run(["doctor", ...flags, "--json"])).out) as Report).findings;
    const ids = async () =>
      (await diagnose()).map(({ id }) => id).filter((id) => /^(?:tables|migration|keys)/.test(id));
    try {
      expect(await ids()).toEqual(["tables-missing"]);
      await run(["migrate", ...flags]);
      expect(await ids()).toEqual([]);
      for (const [version, id] of [
        [0, "migration-pending"],
        [mysqlSchemaVersion + 1, "tables-newer"],
      ] as const) {
        await pool.query(`UPDATE ${table}_schema SET version = ?`, [version]);
        expect(await ids()).toEqual([id]);
      }
      await pool.query(`ALTER TABLE ${table}_schema ADD COLUMN oldest INT DEFAULT ${mysqlSchemaVersion}`);
      expect(await ids()).toEqual([]);
      await pool.query(`UPDATE ${table}_schema SET version = ?`, [mysqlSchemaVersion]);
      await pool.query(`ALTER TABLE ${table}_nonces DROP PRIMARY KEY`);
      expect(await diagnose()).toContainEqual(
        expect.objectContaining({
          id: "tables-refused",
          message: expect.stringMatching(/^the table \S+ has lost its primary key; run: ALTER TABLE /),
        }),
      );
      expect(await run(["migrate", ...flags])).toMatchObject({
        code: 1,
        err: expect.stringContaining("ADD PRIMARY KEY (digest)"),
      });
    } finally {
      await dropMysqlTables((sql) => pool.query(sql), table);
      await pool.end();
    }
  });
});

describe("mysqlRows", () => {
  const good = { version: "10.11.6-MariaDB-0", flushed: "1", has_binlog: "0", synced: "0", read_only: "0" };

  test.each<[Partial<typeof good>, string | undefined]>([
    [{}, undefined],
    [{ version: "11.4.2-MariaDB-log" }, undefined],
    [{ version: "8.0.36" }, "mysql-not-mariadb"],
    [{ version: "10.5.23-MariaDB" }, "mysql-old"],
    [{ version: "10.6.0-MariaDB" }, undefined],
    [{ read_only: "1" }, "mysql-read-only"],
    [{ flushed: "2" }, "mysql-flush"],
    [{ flushed: "3" }, undefined],
    [{ has_binlog: "1" }, "mysql-binlog"],
    [{ has_binlog: "1", synced: "1" }, undefined],
  ])("of %p", (difference, id) => {
    const doubts = doubtsOf(mysqlRows, (name) => ({ ...good, ...difference })[name]);
    expect(doubts.map(([doubt]) => doubt)).toEqual(id === undefined ? [] : [id]);
  });
});
