import { loadDriver } from "./load-driver.ts";
import type * as postgresStore from "./postgres-store.ts";
import type * as redisStore from "./redis-store.ts";
import type * as sqliteStore from "./sqlite-store.ts";

// Each engine is loaded when it is needed: a command line of one does not wait for the others, nor need their packages.

/** What opens a store on SQLite. */
export function loadSqlite(): Promise<typeof sqliteStore> {
  const install = "@countersign/store-sqlite libsql";
  const load = () => loadDriver("libsql", () => import("./sqlite-store.ts"), install);
  return loadDriver("@countersign/store-sqlite", load, install);
}

/** What opens a store on PostgreSQL; the driver is loaded when it connects. */
export function loadPostgres(): Promise<typeof postgresStore> {
  const name = "@countersign/store-postgres";
  return loadDriver(name, () => import("./postgres-store.ts"), `${name} pg`);
}

/** What opens a store on Redis; the driver is loaded when it connects. */
export function loadRedis(): Promise<typeof redisStore> {
  const name = "@countersign/store-redis";
  return loadDriver(name, () => import("./redis-store.ts"), `${name} redis`);
}
