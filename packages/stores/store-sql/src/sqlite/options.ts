import {
  assertFunction,
  hasMethods,
  option,
  optionError,
  type OptionOwner,
  type OptionTable,
  type ReadOptions,
} from "@countersign/core/internal";
import { engineTime, type SqliteDatabase } from "./connection.ts";
import { tablePrefix } from "./schema.ts";

export interface SqliteStoresOptions<Db extends SqliteDatabase = SqliteDatabase> {
  /**
   * An open connection of libsql, better-sqlite3 or node:sqlite. Its transactions must not stay open across an await: while
   * one is open, the stores throw rather than become part of it. The stores never close it.
   */
  readonly database: Db;
  /** Prefix of the tables' names. Default `countersign`. */
  readonly table?: string | undefined;
  /** How long a paid key stays `done`, in milliseconds. Default 90 days, at least one day: a retry after it would pay again. */
  readonly retentionMs?: number | undefined;
  /** How long a done task of work stays known, in milliseconds. Default 7 days, at least 72 hours: one that comes again after it would run again. */
  readonly taskRetentionMs?: number | undefined;
  /** How often what has expired is removed, in milliseconds, give or take a quarter. Default 60,000; 0 leaves it to `prune()`. */
  readonly pruneIntervalMs?: number | undefined;
  /** Accept a database that lives in memory although NODE_ENV is `production`. Default false. */
  readonly allowInProduction?: boolean | undefined;
  /** Milliseconds since 1970, an integer, in place of SQLite's clock. For tests. */
  readonly now?: (() => number) | undefined;
}

export const factoryName = "createStores";

const dayMs = 86_400_000;
// In microseconds, as a fence has it, still a safe integer.
const time = option.integer({ min: 0, max: Math.floor(Number.MAX_SAFE_INTEGER / 1_000) });

export const table = {
  database: option.own(readDatabase),
  table: tablePrefix,
  retentionMs: option.integer({ min: dayMs, max: 36_500 * dayMs, fallback: 90 * dayMs }, "90 days"),
  taskRetentionMs: option.integer({ min: 3 * dayMs, max: 36_500 * dayMs, fallback: 7 * dayMs }, "7 days"),
  pruneIntervalMs: option.integer({ min: 0, max: dayMs, fallback: 60_000 }),
  allowInProduction: option.boolean(false),
  now: option.own(readClock, "SQLite's clock"),
} satisfies OptionTable<SqliteStoresOptions, unknown>;

export type ResolvedSqliteOptions = ReadOptions<typeof table>;

/** True for a connection of libsql, better-sqlite3 or node:sqlite. */
export function isSqliteDatabase(value: unknown): value is SqliteDatabase {
  return hasMethods<SqliteDatabase>(value, "exec", "prepare");
}

function readDatabase(database: unknown, owner: OptionOwner, name: string): SqliteDatabase {
  if (isSqliteDatabase(database)) return database;
  throw optionError(owner, name, "an open connection with exec() and prepare()", database);
}

// null: by SQLite's clock.
function readClock(now: unknown, owner: OptionOwner, name: string): () => number | null {
  if (now === undefined) return engineTime;
  assertFunction(owner, name, now);
  return () => time.read(now(), owner, name);
}
