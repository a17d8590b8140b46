import { assertFunction, assertKnownOptions, integerOption } from "@countersign/guard";
import { type PostgresQueryable, assertQueryable } from "./queryable.ts";
import { type PostgresTables, resolveTables, type TableNames, tableNames } from "./table-names.ts";

/** Options of `createPostgresStores`. */
export interface PostgresStoresOptions extends PostgresTables {
  /**
   * A Pool of `pg`, or anything that runs one statement in a transaction of its own. It needs more than one connection: the
   * stores' steps do not run on the connection of your transaction. The stores never close it.
   */
  readonly pool: PostgresQueryable;
  /** How long a paid key stays `done`, in milliseconds. Default 90 days, at least one day: a retry after it would pay again. */
  readonly retentionMs?: number | undefined;
  /** How often what has expired is removed, in milliseconds, give or take a quarter. Default 60,000; 0 leaves it to `prune()`. */
  readonly pruneIntervalMs?: number | undefined;
  /** How long a step waits for a row that a transaction holds, in milliseconds, before it throws. Default 2,000. */
  readonly lockTimeoutMs?: number | undefined;
  /** Milliseconds since 1970, an integer, in place of the server's clock. For tests. */
  readonly now?: (() => number) | undefined;
}

/** The options with their defaults. */
export interface ResolvedOptions {
  readonly pool: PostgresQueryable;
  /** `schema.table`, as messages name the tables. */
  readonly place: string;
  readonly names: TableNames;
  readonly retentionMs: number;
  readonly pruneIntervalMs: number;
  readonly lockTimeoutMs: number;
  /** A timestamptz; undefined: by the server's clock. */
  readonly now: (() => string) | undefined;
}

/** The name that begins every message about the options. */
export const factory = "createPostgresStores";

export const dayMs = 86_400_000;

const known: readonly (keyof PostgresStoresOptions)[] = [
  "pool",
  "schema",
  "table",
  "retentionMs",
  "pruneIntervalMs",
  "lockTimeoutMs",
  "now",
];

/** Checks the options and fills in the defaults. Throws a TypeError that names the option. */
export function resolveOptions(options: PostgresStoresOptions): ResolvedOptions {
  assertKnownOptions(factory, options, known);
  const { pool, now, retentionMs, pruneIntervalMs, lockTimeoutMs } = options;
  assertQueryable(pool, `${factory}: option pool must be a Pool of pg, or an object`);
  if (now !== undefined) assertFunction(factory, "now", now);
  const tables = resolveTables(factory, options);
  return {
    pool,
    place: `${tables.schema}.${tables.table}_*`,
    names: tableNames(tables),
    retentionMs: integerOption(factory, "retentionMs", retentionMs, {
      min: dayMs,
      max: 36_500 * dayMs,
      fallback: 90 * dayMs,
    }),
    pruneIntervalMs: integerOption(factory, "pruneIntervalMs", pruneIntervalMs, {
      min: 0,
      max: dayMs,
      fallback: 60_000,
    }),
    lockTimeoutMs: integerOption(factory, "lockTimeoutMs", lockTimeoutMs, {
      min: 1,
      max: 60_000,
      fallback: 2_000,
    }),
    now: now === undefined ? undefined : () => new Date(now()).toISOString(),
  };
}
