import {
  option,
  optionError,
  readOptions,
  type Given,
  type OptionOwner,
  type OptionTable,
} from "@countersign/core/door";
import { Engine } from "./engine.ts";
import { type TableNames, tableNames } from "./tables.ts";

/** Options of `createMariadbStores`. */
export interface MariadbStoresOptions {
  /** `mysql://user:password@host:port/database`. */
  readonly uri: string;
  /** Of the tables that createTables() has made. Default `countersign`. */
  readonly prefix?: string | undefined;
  /** How long a paid key stays `done`, in milliseconds. Default 90 days, at least one day: a retry after it would pay again. */
  readonly retentionMs?: number | undefined;
  /** How often what has expired is removed, in milliseconds, give or take a quarter. Default 60,000; 0 leaves it to `prune()`. */
  readonly pruneIntervalMs?: number | undefined;
  /** Milliseconds since 1970, in place of the server's clock. For tests. */
  readonly now?: (() => number) | undefined;
}

/** What each store is made of. */
export interface StoreParts {
  readonly engine: Engine;
  readonly names: TableNames;
  readonly retentionMs: number;
  readonly pruneIntervalMs: number;
  /** SQL: microseconds since 1970. */
  readonly clock: string;
  /** The parameter of `clock`, if it has one. */
  readonly time: () => Readonly<Record<string, number>>;
}

/** The name that begins every message about the options. */
export const factory = "createMariadbStores";

const dayMs = 86_400_000;

// When the statement began, in UTC whatever the session's time zone is. A statement that then waits for a lock ends a lease by so much
// sooner than it could, which is safe; a claim reads it in a statement behind its lock.
const serverClock = "TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))";

/** What the rules read. */
interface ReadOptions extends Given<Omit<MariadbStoresOptions, "now">> {
  readonly now: (() => number) | undefined;
}

const table: OptionTable<MariadbStoresOptions, ReadOptions> = {
  uri: option.own(readText),
  prefix: option.own((prefix = "countersign", owner, name) => readText(prefix, owner, name), '"countersign"'),
  retentionMs: option.integer({ min: dayMs, max: 36_500 * dayMs, fallback: 90 * dayMs }),
  pruneIntervalMs: option.integer({ min: 0, max: dayMs, fallback: 60_000 }),
  now: option.optional(option.call(), "the server's clock"),
};

/** Checks the options and fills in the defaults. Throws a TypeError that names the option. */
export function resolveOptions(options: MariadbStoresOptions): StoreParts {
  const { uri, prefix, retentionMs, pruneIntervalMs, now } = readOptions(factory, table, options);
  const names = tableNames(prefix);
  return {
    engine: new Engine(uri, { [names.keys]: "id", [names.nonces]: "digest" }),
    names,
    retentionMs,
    pruneIntervalMs,
    clock: now === undefined ? serverClock : ":nowUs",
    time: () => (now === undefined ? {} : { nowUs: now() * 1_000 }),
  };
}

function readText(text: unknown, owner: OptionOwner, name: string): string {
  if (typeof text === "string") return text;
  throw optionError(owner, name, "a string", text);
}
