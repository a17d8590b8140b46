// Tables of a prefix of their own, used again by the tests of one file: making and dropping them takes longer than most tests.
import { fromMysql2 } from "@countersign/store-sql/mysql2";
import { migrate } from "@countersign/store-sql";
import { isolatedName, mysqlUrl } from "@countersign/test-support/servers/engines.ts";
import { afterAll } from "@jest/globals";
import { type Pool, type PoolConnection, type RowDataPacket, createConnection } from "mysql2/promise";

export const suffixes = ["idempotency", "nonces", "schema", "answers", "lanes", "tasks", "queues", "newest"];
const allSuffixes = [...suffixes, "payouts"];

interface Tables {
  readonly table: string;
  /** What describes them as they were made. */
  readonly made: string;
}

const taken = new Map<string, Tables>();
/** By server and database. */
const spare = new Map<string, Tables[]>();

afterAll(async () => {
  if (spare.size === 0) return;
  const connection = await createConnection({ uri: mysqlUrl ?? "" });
  const [port] = (await placeOf(connection)).split(" ");
  for (const [place, all] of spare) {
    const [itsPort, database] = place.split(" ");
    // A server of the file's own goes with its tables.
    if (itsPort !== port) continue;
    for (const { table } of all) await connection.query(dropping(`${database}.${table}`));
  }
  await connection.end();
});

/** The prefix of empty tables in the pool's database, and of one for payouts. */
export async function takeTables(pool: Pool): Promise<string> {
  const tables = spare.get(await placeOf(pool))?.pop() ?? (await newTables(pool));
  taken.set(tables.table, tables);
  return tables.table;
}

async function newTables(pool: Pool): Promise<Tables> {
  const table = await makeTables(pool);
  return { table, made: await describeTables(pool, table) };
}

/** New tables, which nobody drops. */
export async function makeTables(pool: Pool): Promise<string> {
  const table = isolatedName("my");
  await migrate(fromMysql2(pool), { table });
  await pool.query(`CREATE TABLE ${table}_payouts (id VARBINARY(3072) PRIMARY KEY) ENGINE = InnoDB`);
  return table;
}

/** Empties the tables for the next test, or drops them when the test has changed more than rows. */
export async function returnTables(pool: Pool, table: string): Promise<void> {
  const tables = taken.get(table);
  if (tables === undefined || !(await isEmptied(pool, tables))) {
    await pool.query(dropping(table));
    return;
  }
  const place = await placeOf(pool);
  spare.set(place, [...(spare.get(place) ?? []), tables]);
}

async function isEmptied(pool: Pool, { table, made }: Tables): Promise<boolean> {
  const connection = await pool.getConnection();
  try {
    await connection.query("SET innodb_lock_wait_timeout = 2, lock_wait_timeout = 2");
    await connection.query("START TRANSACTION");
    for (const suffix of allSuffixes) {
      if (suffix !== "schema") await connection.query(`DELETE FROM ${table}_${suffix}`);
    }
    await connection.query(`UPDATE ${table}_schema SET highest_fence = 0`);
    await connection.query("COMMIT");
    return (await describeTables(connection, table)) === made;
  } catch {
    return false;
  } finally {
    connection.destroy();
  }
}

/** Everything but the rows of the other tables than that of the version, as one text. */
async function describeTables(server: Pool | PoolConnection, table: string): Promise<string> {
  const found: unknown[] = [];
  for (const suffix of allSuffixes) {
    const name = `${table}_${suffix}`;
    const [shown] = await server.query<RowDataPacket[]>(`SHOW CREATE TABLE ${name}`);
    const [triggers] = await server.query<RowDataPacket[]>(`SHOW TRIGGERS WHERE \`Table\` = '${name}'`);
    found.push(shown, triggers);
  }
  const [version] = await server.query<RowDataPacket[]>(`SELECT * FROM ${table}_schema`);
  return JSON.stringify([found, version]).replaceAll(/ AUTO_INCREMENT=\d+/g, "");
}

async function placeOf(server: Pick<Pool, "query">): Promise<string> {
  const [rows] = await server.query<RowDataPacket[]>("SELECT CONCAT(@@port, ' ', DATABASE()) AS place");
  return String(rows[0]?.["place"]);
}

/** `table` may have its database before it. */
export function dropping(table: string): string {
  return `DROP TABLE IF EXISTS ${allSuffixes.map((suffix) => `${table}_${suffix}`).join(", ")}`;
}
