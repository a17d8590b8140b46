import { expect, test } from "@jest/globals";
import type { RowDataPacket } from "mysql2/promise";
import { describeOnMysql } from "@countersign/test-support/servers/engines.ts";
import { connectPool } from "./connections.ts";
import { returnTables, takeTables } from "./spare-tables.ts";

describeOnMysql("tables that are used again", () => {
  test("have lost their rows", async () => {
    const pool = connectPool();
    const table = await takeTables(pool);
    await pool.query(`INSERT INTO ${table}_payouts VALUES ('paid')`);
    await pool.query(`INSERT INTO ${table}_nonces VALUES (REPEAT('d', 32), 'token', 1)`);
    await pool.query(`UPDATE ${table}_schema SET highest_fence = 7`);
    await returnTables(pool, table);
    expect(await takeTables(pool)).toBe(table);
    const [rows] = await pool.query<RowDataPacket[]>(
      `SELECT (SELECT COUNT(*) FROM ${table}_payouts) + (SELECT COUNT(*) FROM ${table}_nonces) AS kept, highest_fence FROM ${table}_schema`,
    );
    expect(rows).toEqual([{ kept: 0, highest_fence: 0 }]);
    await returnTables(pool, table);
  });

  test.each([
    ["a column", (table: string) => `ALTER TABLE ${table}_nonces ADD COLUMN more INT`],
    ["an index", (table: string) => `ALTER TABLE ${table}_nonces DROP KEY pruning`],
    ["the engine", (table: string) => `ALTER TABLE ${table}_nonces ENGINE = MyISAM`],
    [
      "a trigger",
      (table: string) =>
        `CREATE TRIGGER ${table}_kept BEFORE UPDATE ON ${table}_nonces FOR EACH ROW SET @a = 1`,
    ],
    ["the version", (table: string) => `UPDATE ${table}_schema SET version = 2`],
    ["a table that is gone", (table: string) => `DROP TABLE ${table}_answers`],
  ])("are given to nobody with another state: %s", async (_what, change) => {
    const pool = connectPool();
    const table = await takeTables(pool);
    await pool.query(change(table));
    await returnTables(pool, table);
    const [rows] = await pool.query(`SHOW TABLES LIKE '${table}%'`);
    expect(rows).toEqual([]);
  });
});
