import { OptionError } from "@countersign/core";
import {
  hasMethods,
  option,
  readOptions,
  type OptionOwner,
  type OptionTable,
  type ReadOptions,
} from "@countersign/core/internal";
import type { Database } from "@countersign/idempotency";
import { type MysqlTables, type TableNames, tableNames, tablesTable } from "./table-names.ts";

export interface MysqlStoresOptions<Tx> extends MysqlTables {
  /** Your database library on MySQL or MariaDB, as `fromMysql2(pool)` and its like give it. The stores never close it. */
  readonly database: Database<Tx>;
  /** How long a paid key stays `done`, in milliseconds. Default 90 days, at least one day: a retry after it would pay again. */
  readonly retentionMs?: number | undefined;
  /** How long a done task is remembered, so that adding it again adds nothing. Milliseconds, default 7 days, at least 72 hours. */
  readonly taskRetentionMs?: number | undefined;
  /**
   * How many transactions may be open at once in this process; further ones wait for their turn. Default: four fifths of the connections of
   * your library's pool, so that a handler that also reads by the pool finds a free one; no bound where the library does not tell how many
   * connections it has, as Kysely and Prisma.
   */
  readonly maxTransactions?: number | undefined;
  /** How often what has expired is removed, in milliseconds, give or take a quarter. Default 60,000; 0 leaves it to `prune()`. */
  readonly pruneIntervalMs?: number | undefined;
  /**
   * How long a step outside of your transactions waits for a locked row, in milliseconds, before it throws. MariaDB counts whole seconds:
   * rounded up. MySQL has no such bound: there the session's own holds. Default 2,000.
   */
  readonly lockTimeoutMs?: number | undefined;
  /** Milliseconds since 1970, an integer, in place of the server's clock. For tests. */
  readonly now?: (() => number) | undefined;
}

export const factoryName = "createStores";

const dayMs = 86_400_000;

const clock = option.clock(Date.now, "Date.now");

export const table = {
  database: option.own(readDatabase),
  ...tablesTable,
  retentionMs: option.integer({ min: dayMs, max: 36_500 * dayMs, fallback: 90 * dayMs }, "90 days"),
  taskRetentionMs: option.integer({ min: 3 * dayMs, max: 36_500 * dayMs, fallback: 7 * dayMs }, "7 days"),
  pruneIntervalMs: option.integer({ min: 0, max: dayMs, fallback: 60_000 }),
  maxTransactions: option.optional(option.integer({ min: 1, max: 100_000, fallback: 1 }), "by the pool"),
  lockTimeoutMs: option.integer({ min: 1, max: 60_000, fallback: 2_000 }),
  now: option.optional(option.own(readClock), "the server's clock"),
} satisfies OptionTable<MysqlStoresOptions<unknown>, unknown>;

export interface ResolvedMysqlOptions<Tx> extends Omit<ReadOptions<typeof table>, "database" | "table"> {
  readonly database: Database<Tx>;
  readonly names: TableNames;
}

/** Checks the options and fills in the defaults. Throws an OptionError. */
export function resolveOptions<Tx>(
  options: MysqlStoresOptions<Tx>,
  owner: OptionOwner = factoryName,
): ResolvedMysqlOptions<Tx> {
  const { table: prefix, database: _, ...read } = readOptions(owner, table, options);
  return { ...read, database: options.database, names: tableNames(prefix) };
}

function readDatabase(database: unknown, owner: OptionOwner, name: string): Database<unknown> {
  if (namesMysql(database) && hasMethods(database, "run", "query", "alone", "change")) return database;
  const what =
    "must be your database library on MySQL or MariaDB, such as fromMysql2(pool) of @countersign/store-sql";
  throw new OptionError(owner, { option: name, what });
}

/** Throws an OptionError unless the first argument of a migration is a database on MySQL or MariaDB. */
export function assertDatabase(owner: OptionOwner, database: unknown): void {
  readDatabase(database, owner, "database");
}

/** True for a pool or connection of mysql2 itself. */
export function isMysqlPool(value: unknown): boolean {
  return hasMethods(value, "query", "execute");
}

/** True for a database that names MySQL's dialect, whole or not: what it lacks is said by its stores. */
export function namesMysql(database: unknown): database is Database<unknown> {
  return typeof database === "object" && database !== null && Reflect.get(database, "dialect") === "mysql";
}

// Microseconds as a literal.
function readClock(now: unknown, owner: OptionOwner, name: string): () => string {
  const nowMs = clock.read(now, owner, name);
  return () => String(Math.trunc(nowMs()) * 1_000);
}
