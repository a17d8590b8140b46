import { OptionError } from "@countersign/core";
import {
  option,
  readOptions,
  type OptionOwner,
  type OptionTable,
  type ReadOptions,
} from "@countersign/core/internal";
import type { Database } from "@countersign/idempotency";
import { isDatabase, queryableOf } from "./database-queryable.ts";
import { isMysqlPool } from "../mysql/options.ts";
import { type PostgresQueryable, isPool, isQueryable } from "./queryable.ts";
import { type PostgresTables, type TableNames, tableNames, tablesTable } from "./table-names.ts";

interface CommonOptions extends PostgresTables {
  /** How long a paid key stays `done`, in milliseconds. Default 90 days, at least one day: a retry after it would pay again. */
  readonly retentionMs?: number | undefined;
  /** How long a done task stays `known`, in milliseconds. Default 7 days, at least 72 hours: services repeat a webhook for a day. */
  readonly taskRetentionMs?: number | undefined;
  /** How often what has expired is removed, in milliseconds, give or take a quarter. Default 60,000; 0 leaves it to `prune()`. */
  readonly pruneIntervalMs?: number | undefined;
  /** How long a step waits for a row that a transaction holds, in milliseconds, before it throws. Default 2,000. */
  readonly lockTimeoutMs?: number | undefined;
  /** Milliseconds since 1970, an integer, in place of the server's clock. For tests. */
  readonly now?: (() => number) | undefined;
}

export interface PostgresStoresOptions extends CommonOptions {
  /**
   * A Pool of `pg`, or anything that runs one statement in a transaction of its own. It needs more than one connection: the
   * stores' steps do not run on the connection of your transaction. The stores never close it.
   */
  readonly pool: PostgresQueryable;
  /**
   * Names each statement, so that the server keeps its plan on each connection: a third less time a payout. For a Pool of `pg`; PgBouncer
   * in transaction mode needs version 1.21 and `max_prepared_statements`. Default false.
   */
  readonly prepare?: boolean | undefined;
  readonly database?: undefined;
  readonly maxTransactions?: undefined;
}

export interface PostgresDatabaseOptions<Tx> extends CommonOptions {
  /** Your own database library, by `fromPg` or its like of `@countersign/store-sql`, in place of `pool`. The stores never close it. */
  readonly database: Database<Tx>;
  /**
   * How many transactions may be open at once in this process; further ones wait for their turn. Default: four fifths of the connections of
   * your library's pool, so that a handler that also reads by the pool finds a free one; no bound where the library does not tell how many
   * connections it has, as Kysely and Prisma.
   */
  readonly maxTransactions?: number | undefined;
  readonly pool?: undefined;
  readonly prepare?: undefined;
}

/** Either gives the stores their connections. */
export type AnyPostgresOptions<Tx = never> = PostgresStoresOptions | PostgresDatabaseOptions<Tx>;

export const factoryName = "createStores";

const mysqlPool = "got a pool of mysql2: write database: fromMysql2(pool)";

const databases = "made by fromPg(pool), fromMysql2(pool) or its like, or a connection of SQLite";

const dayMs = 86_400_000;

const clock = option.clock(Date.now, "Date.now");

export const table = {
  pool: option.optional(option.own(readPool), "required"),
  database: option.optional(option.own(readDatabase)),
  prepare: option.boolean(false),
  ...tablesTable,
  retentionMs: option.integer({ min: dayMs, max: 36_500 * dayMs, fallback: 90 * dayMs }, "90 days"),
  taskRetentionMs: option.integer({ min: 3 * dayMs, max: 36_500 * dayMs, fallback: 7 * dayMs }, "7 days"),
  pruneIntervalMs: option.integer({ min: 0, max: dayMs, fallback: 60_000 }),
  maxTransactions: option.optional(option.integer({ min: 1, max: 100_000, fallback: 1 }), "by the pool"),
  lockTimeoutMs: option.integer({ min: 1, max: 60_000, fallback: 2_000 }),
  now: option.optional(option.own(readClock), "the server's clock"),
} satisfies OptionTable<AnyPostgresOptions, unknown>;

export interface ResolvedPostgresOptions extends Omit<
  ReadOptions<typeof table>,
  keyof PostgresTables | "pool" | "database"
> {
  readonly pool: PostgresQueryable;
  readonly names: TableNames;
}

/** Checks the options and fills in the defaults. Throws an OptionError. */
export function resolveOptions<Tx>(
  options: AnyPostgresOptions<Tx>,
  owner: OptionOwner = factoryName,
): ResolvedPostgresOptions {
  const { schema, table: prefix, pool, database, ...read } = readOptions(owner, table, options);
  if (pool !== undefined && database !== undefined) {
    throw new OptionError(owner, { option: "pool", what: "cannot be set beside database; leave one out" });
  }
  if (pool !== undefined && read.maxTransactions !== undefined) {
    throw new OptionError(owner, {
      option: "maxTransactions",
      what: "needs the option database: stores on a pool have no transactions",
    });
  }
  const given = database === undefined ? pool : queryableOf(database);
  if (given === undefined) {
    throw new OptionError(owner, { option: "database", what: `must be ${databases}` });
  }
  if (read.prepare && !isPool(given)) {
    throw new OptionError(owner, { option: "prepare", what: "needs the option pool, with a Pool of pg" });
  }
  return {
    ...read,
    pool: given,
    names: tableNames({ schema, table: prefix }),
  };
}

function readPool(pool: unknown, owner: OptionOwner, name: string): PostgresQueryable {
  if (isDatabase(pool)) {
    throw new OptionError(owner, {
      option: name,
      what: "got what fromPg() or its like made: write database: …",
    });
  }
  if (isMysqlPool(pool)) throw new OptionError(owner, { option: name, what: mysqlPool });
  if (isQueryable(pool)) return pool;
  const what = "must be a Pool of pg, or an object with a function query(text, values)";
  throw new OptionError(owner, { option: name, what });
}

function readDatabase(database: unknown, owner: OptionOwner, name: string): Database<unknown> {
  if (!isDatabase(database)) {
    const isQuery = isQueryable(database);
    if (isMysqlPool(database)) throw new OptionError(owner, { option: name, what: mysqlPool });
    const what = isQuery
      ? "got a pool: write database: fromPg(pool), with fromPg of @countersign/store-sql"
      : `must be ${databases}`;
    throw new OptionError(owner, { option: name, what });
  }
  if (database.dialect === "postgresql") return database;
  const what = `got ${database.library} on ${database.dialect}, and these tables are in PostgreSQL`;
  throw new OptionError(owner, { option: name, what });
}

// A timestamptz.
function readClock(now: unknown, owner: OptionOwner, name: string): () => string {
  const nowMs = clock.read(now, owner, name);
  return () => new Date(nowMs()).toISOString();
}
