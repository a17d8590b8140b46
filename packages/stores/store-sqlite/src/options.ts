import {
  assertFunction,
  option,
  optionError,
  type OptionOwner,
  type OptionTable,
  type ReadOptions,
} from "@countersign/core/door";
import { engineTime, type SqliteDatabase } from "./connection.ts";
import { tablePrefix } from "./schema.ts";

export interface SqliteStoresOptions {
  /**
   * An open connection of libsql, better-sqlite3 or node:sqlite. Its transactions must not stay open across an await: while
   * one is open, the stores throw rather than become part of it. The stores never close it.
   */
  readonly database: SqliteDatabase;
  /** Prefix of the tables' names. Default `countersign`. */
  readonly table?: string | undefined;
  /** How long a paid key stays `done`, in milliseconds. Default 90 days, at least one day: a retry after it would pay again. */
  readonly retentionMs?: number | undefined;
  /** How often what has expired is removed, in milliseconds, give or take a quarter. Default 60,000; 0 leaves it to `prune()`. */
  readonly pruneIntervalMs?: number | undefined;
  /** Accept a database that lives in memory although NODE_ENV is `production`. Default false. */
  readonly allowInProduction?: boolean | undefined;
  /** Milliseconds since 1970, an integer, in place of SQLite's clock. For tests. */
  readonly now?: (() => number) | undefined;
}

export const factoryName = "createSqliteStores";

const dayMs = 86_400_000;
// In microseconds, as a fence has it, still a safe integer.
const time = option.integer({ min: 0, max: Math.floor(Number.MAX_SAFE_INTEGER / 1_000) });

export const table = {
  database: option.own(readDatabase),
  table: tablePrefix,
  retentionMs: {
    ...option.integer({ min: dayMs, max: 36_500 * dayMs, fallback: 90 * dayMs }),
    byDefault: "90 days",
  },
  pruneIntervalMs: option.integer({ min: 0, max: dayMs, fallback: 60_000 }),
  allowInProduction: option.boolean(false),
  now: option.own(readClock, "SQLite's clock"),
} satisfies OptionTable<SqliteStoresOptions, unknown>;

export type ResolvedSqliteOptions = ReadOptions<typeof table>;

function readDatabase(database: unknown, owner: OptionOwner, name: string): SqliteDatabase {
  if (isDatabase(database)) return database;
  throw optionError(owner, name, "an open connection with exec() and prepare()", database);
}

function isDatabase(value: unknown): value is SqliteDatabase {
  return (
    typeof value === "object" &&
    value !== null &&
    "exec" in value &&
    typeof value.exec === "function" &&
    "prepare" in value &&
    typeof value.prepare === "function"
  );
}

// null: by SQLite's clock.
function readClock(now: unknown, owner: OptionOwner, name: string): () => number | null {
  if (now === undefined) return engineTime;
  assertFunction(owner, name, now);
  return () => time.read(now(), owner, name);
}
