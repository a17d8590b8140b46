import { OptionError } from "@countersign/core";
import {
  option,
  readOptions,
  type OptionOwner,
  type OptionTable,
  type ReadOptions,
} from "@countersign/core/door";
import { type PostgresQueryable, isQueryable } from "./queryable.ts";
import { type PostgresTables, type TableNames, tableNames, tablesTable } from "./table-names.ts";

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

export const factoryName = "createPostgresStores";

const dayMs = 86_400_000;

const clock = option.clock(Date.now, "Date.now");

export const table = {
  pool: option.own(readPool),
  ...tablesTable,
  retentionMs: {
    ...option.integer({ min: dayMs, max: 36_500 * dayMs, fallback: 90 * dayMs }),
    byDefault: "90 days",
  },
  pruneIntervalMs: option.integer({ min: 0, max: dayMs, fallback: 60_000 }),
  lockTimeoutMs: option.integer({ min: 1, max: 60_000, fallback: 2_000 }),
  now: option.optional(option.own(readClock), "the server's clock"),
} satisfies OptionTable<PostgresStoresOptions, unknown>;

export interface ResolvedPostgresOptions extends Omit<ReadOptions<typeof table>, keyof PostgresTables> {
  /** `schema.table`, as messages name the tables. */
  readonly place: string;
  readonly names: TableNames;
}

/** Checks the options and fills in the defaults. Throws an OptionError. */
export function resolveOptions(
  options: PostgresStoresOptions,
  owner: OptionOwner = factoryName,
): ResolvedPostgresOptions {
  const { schema, table: prefix, ...read } = readOptions(owner, table, options);
  return { ...read, place: `${schema}.${prefix}_*`, names: tableNames({ schema, table: prefix }) };
}

function readPool(pool: unknown, owner: OptionOwner, name: string): PostgresQueryable {
  if (isQueryable(pool)) return pool;
  const what = "must be a Pool of pg, or an object with a function query(text, values)";
  throw new OptionError(owner, { option: name, what });
}

// A timestamptz.
function readClock(now: unknown, owner: OptionOwner, name: string): () => string {
  const nowMs = clock.read(now, owner, name);
  return () => new Date(nowMs()).toISOString();
}
