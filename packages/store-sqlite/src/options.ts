import type { SqliteDatabase } from "./driver.ts";
import { assertTablePrefix } from "./schema.ts";

/** Options of `createSqliteStores`. */
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

/** The options with their defaults. */
export interface ResolvedOptions {
  readonly database: SqliteDatabase;
  readonly table: string;
  readonly retentionMs: number;
  readonly pruneIntervalMs: number;
  readonly allowInProduction: boolean;
  /** null: by SQLite's clock. */
  readonly now: () => number | null;
}

/** The name that begins every message about the options. */
export const factory = "createSqliteStores";

const known = ["database", "table", "retentionMs", "pruneIntervalMs", "allowInProduction", "now"];
const dayMs = 86_400_000;
// In microseconds, as a fence has it, still a safe integer.
const latestMs = Math.floor(Number.MAX_SAFE_INTEGER / 1_000);

/** Checks the options and fills in the defaults. Throws a TypeError that names the option. */
export function resolveOptions(options: SqliteStoresOptions): ResolvedOptions {
  if (typeof options !== "object" || options === null) {
    throw new TypeError(`${factory}: options must be an object with a database`);
  }
  const unknown = Object.keys(options).find((key) => !known.includes(key));
  if (unknown !== undefined) {
    throw new TypeError(`${factory}: unknown option ${unknown}; known options are ${known.join(", ")}`);
  }
  const { database, table = "countersign", allowInProduction = false, now } = options;
  if (typeof database?.exec !== "function" || typeof database.prepare !== "function") {
    throw new TypeError(`${factory}: option database must be an open connection with exec() and prepare()`);
  }
  assertTablePrefix(factory, table);
  if (typeof allowInProduction !== "boolean") {
    throw new TypeError(`${factory}: option allowInProduction must be true or false`);
  }
  if (now !== undefined && typeof now !== "function") {
    throw new TypeError(`${factory}: option now must be a function`);
  }
  return {
    database,
    table,
    retentionMs: integer("retentionMs", options.retentionMs ?? 90 * dayMs, dayMs, 36_500 * dayMs),
    pruneIntervalMs: integer("pruneIntervalMs", options.pruneIntervalMs ?? 60_000, 0, dayMs),
    allowInProduction,
    now: now === undefined ? engineTime : () => integer("now", now(), 0, latestMs),
  };
}

function engineTime(): null {
  return null;
}

function integer(option: string, value: unknown, min: number, max: number): number {
  if (typeof value !== "number" || !Number.isInteger(value) || value < min || value > max) {
    const got = typeof value === "number" ? value : `a ${typeof value}`;
    throw new TypeError(`${factory}: option ${option} must be an integer from ${min} to ${max}, got ${got}`);
  }
  return value;
}
