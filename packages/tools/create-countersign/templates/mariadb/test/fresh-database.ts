import { existsSync } from "node:fs";
import { createConnection } from "mysql2/promise";

if (existsSync(".env")) process.loadEnvFile(".env");
const url = process.env["DATABASE_URL"];
if (!url) {
  const example = "DATABASE_URL=mysql://root@127.0.0.1:3306/test";
  console.error(`npm test needs a MariaDB: set DATABASE_URL, for example ${example}`);
  process.exit(1);
}
const database = `test_${process.pid}_${Date.now()}`;
const own = new URL(url);
own.pathname = `/${database}`;
await run(`CREATE DATABASE ${database}`);

/** Settings of a database that the tests have for themselves: the platform makes its tables. */
export const databaseSettings = { DATABASE_URL: own.href };

export async function removeDatabase(): Promise<void> {
  await run(`DROP DATABASE IF EXISTS ${database}`);
}

async function run(sql: string): Promise<void> {
  const connection = await createConnection(url!);
  await connection.query(sql);
  await connection.end();
}
