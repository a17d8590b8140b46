// Tables for one case after the other: making them takes longer than most cases.
import { randomBytes } from "node:crypto";
import { createTables } from "@countersign/example-custom-store";
import { afterAll } from "@jest/globals";
import { createPool, type Pool } from "mysql2/promise";

const empty = new Map<string, string[]>();
const made = new Map<string, string[]>();

/** Of tables that nobody else has: the server may be one that others use. */
export function newPrefix(): string {
  return `cs_${randomBytes(6).toString("hex")}`;
}

/** The prefix of empty tables that no other case uses now. */
export async function takeTables(url: string, pool: Pool): Promise<string> {
  const waiting = empty.get(url)?.pop();
  if (waiting !== undefined) return waiting;
  const prefix = newPrefix();
  made.set(url, [...(made.get(url) ?? []), prefix]);
  await createTables(pool, prefix);
  return prefix;
}

/** For the next case. Tables of a case that did not come to its end are never given again. */
export async function giveTablesBack(url: string, pool: Pool, prefix: string): Promise<void> {
  for (const table of ["keys", "nonces"]) {
    await pool.query(`DROP TRIGGER IF EXISTS ${prefix}_${table}_full`);
    await pool.query(`DELETE FROM ${prefix}_${table}`);
  }
  await pool.query(`UPDATE ${prefix}_floor SET fence = 0`);
  empty.set(url, [...(empty.get(url) ?? []), prefix]);
}

/** What a server whose disk is full answers to every row that needs room; a row that is there already needs none. */
export async function refuseRows(pool: Pool, prefix: string): Promise<void> {
  for (const table of ["keys", "nonces"]) {
    await pool.query(
      `CREATE TRIGGER ${prefix}_${table}_full AFTER INSERT ON ${prefix}_${table} FOR EACH ROW
SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'The table is full'`,
    );
  }
}

export async function dropTables(pool: Pool, prefix: string): Promise<void> {
  await pool.query(`DROP TABLE IF EXISTS ${prefix}_keys, ${prefix}_floor, ${prefix}_nonces`);
}

afterAll(async () => {
  for (const [uri, prefixes] of made) {
    const pool = createPool({ uri });
    for (const prefix of prefixes) await dropTables(pool, prefix);
    await pool.end();
  }
});
