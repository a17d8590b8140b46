import { OptionError } from "@countersign/core";
import { hasMethods } from "@countersign/core/internal";
import { type MysqlStoresOptions, namesMysql } from "./mysql/options.ts";
import { createMysqlStores } from "./mysql/stores.ts";
import type { PostgresDatabaseOptions, PostgresStoresOptions } from "./postgres/options.ts";
import { createPostgresStores } from "./postgres/stores.ts";
import type { PoolStores, Stores } from "./server-stores.ts";
import type { SqliteDatabase } from "./sqlite/connection.ts";
import { isSqliteDatabase, type SqliteStoresOptions } from "./sqlite/options.ts";
import { createSqliteStores, type SqliteStores } from "./sqlite/stores.ts";

/** Options of {@link createStores} on PostgreSQL, MySQL and MariaDB. */
export type StoresOptions<Tx> = PostgresDatabaseOptions<Tx> | MysqlStoresOptions<Tx>;

/**
 * Creates the stores of your database: a connection of SQLite, or what `fromPg(pool)` and its like make of your library. SQLite's tables are
 * created where they are missing; a server's are made by `countersign migrate` or `migrate()`, and nothing is sent to it before the first
 * step or `ready()`. With `pool`, a pool of pg for the stores alone, they are PostgreSQL's in lease mode. Throws an OptionError on a wrong
 * option.
 */
export function createStores<Db extends SqliteDatabase>(options: SqliteStoresOptions<Db>): SqliteStores<Db>;
export function createStores<Tx>(options: StoresOptions<Tx>): Stores<Tx>;
export function createStores(options: PostgresStoresOptions): PoolStores;
export function createStores<Tx, Db extends SqliteDatabase>(
  options: SqliteStoresOptions<Db> | StoresOptions<Tx> | PostgresStoresOptions,
): SqliteStores<Db> | Stores<Tx> | PoolStores {
  assertInBraces("createStores", options);
  if (isForSqlite(options)) return createSqliteStores(options);
  return isForMysql(options) ? createMysqlStores(options) : createPostgresStores(options);
}

type AnyOptions<Tx, Db extends SqliteDatabase> =
  | SqliteStoresOptions<Db>
  | StoresOptions<Tx>
  | PostgresStoresOptions;

/** Throws an OptionError for a database or pool in the place of the options: each of its members would be called an unknown option. */
export function assertInBraces(factory: string, options: unknown): void {
  if (!isSqliteDatabase(options) && !hasMethods(options, "query")) return;
  const what = "is what was given: write { database: … }, in braces";
  throw new OptionError(factory, { option: "database", what });
}

/** True for options on a connection of SQLite. */
export function isForSqlite<Tx, Db extends SqliteDatabase>(
  options: AnyOptions<Tx, Db>,
): options is SqliteStoresOptions<Db> {
  return isSqliteDatabase(databaseOf(options));
}

export function isForMysql<Tx>(
  options: StoresOptions<Tx> | PostgresStoresOptions,
): options is MysqlStoresOptions<Tx> {
  return namesMysql(databaseOf(options));
}

function databaseOf(options: unknown): unknown {
  return typeof options === "object" && options !== null ? Reflect.get(options, "database") : undefined;
}
