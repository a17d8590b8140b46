import { existsSync } from "node:fs";
import { Client } from "pg";

if (existsSync(".env")) process.loadEnvFile(".env");
const url = process.env["DATABASE_URL"];
if (!url) {
  const example = "DATABASE_URL=postgres://postgres@127.0.0.1:5432/postgres";
  console.error(`npm test needs a PostgreSQL: set DATABASE_URL, for example ${example}`);
  process.exit(1);
}
const schema = `test_${process.pid}_${Date.now()}`;

/** Settings of a schema that the tests have for themselves, for all tables: the platform makes it. */
export const databaseSettings = { DATABASE_URL: url, DATABASE_SCHEMA: schema, STORES_SCHEMA: schema };

export async function removeDatabase(): Promise<void> {
  const client = new Client({ connectionString: url });
  await client.connect();
  await client.query(`DROP SCHEMA IF EXISTS ${schema} CASCADE`);
  await client.end();
}
