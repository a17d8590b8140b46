// The real servers that tests run on. test/support/runs/engine-setup.mjs has found or started them before the first test.
import { randomBytes } from "node:crypto";
import { describe } from "@jest/globals";

/** Undefined: this machine has no PostgreSQL. */
export const postgresUrl: string | undefined = urlOf(
  "DATABASE_URL",
  "postgres://postgres@127.0.0.1:5432/test",
);

/** Undefined: this machine has no Redis. */
export const redisUrl: string | undefined = urlOf("REDIS_URL", "redis://127.0.0.1:6379");

/** Undefined: this machine has no MariaDB. In a run on MySQL it is one of that. */
export const mysqlUrl: string | undefined = urlOf("MYSQL_URL", "mysql://root@127.0.0.1:3306/test");

/** What the server of `mysqlUrl` is. */
export const mysqlEngine: "mariadb" | "mysql" = process.env["MYSQL_ENGINE"] === "mysql" ? "mysql" : "mariadb";

/** `describe` where there is a PostgreSQL; the set-up has said loudly what is skipped, and fails with CI=true. */
export const describeOnPostgres: typeof describe.skip = postgresUrl === undefined ? describe.skip : describe;

export const describeOnRedis: typeof describe.skip = redisUrl === undefined ? describe.skip : describe;

export const describeOnMysql: typeof describe.skip = mysqlUrl === undefined ? describe.skip : describe;

/** A name for a schema or a key prefix that no other test file or run uses: lower-case letters, digits, underscores. */
export function isolatedName(purpose: string): string {
  return `cs_${purpose}_${randomBytes(6).toString("hex")}`;
}

// The set-up sets a variable to nothing when the server is missing.
function urlOf(variable: string, usual: string): string | undefined {
  const url = process.env[variable] ?? usual;
  return url === "" ? undefined : url;
}
