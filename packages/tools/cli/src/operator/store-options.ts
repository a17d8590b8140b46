import { Option, type Command } from "commander";
import { UsageError } from "../command-io.ts";
import { printable } from "../printable.ts";
import { parseStoreModule, parseStoreUrl, type StoreLocation } from "./store-location.ts";

/** The flags that name a store. */
export interface StoreFlags {
  readonly storeUrl?: string | undefined;
  readonly storeModule?: string | undefined;
  readonly schema?: string | undefined;
  readonly table?: string | undefined;
  readonly prefix?: string | undefined;
}

/** A store and its place at the location. */
export interface StoreTarget {
  readonly location: StoreLocation;
  readonly schema: string | undefined;
  readonly table: string | undefined;
  readonly prefix: string | undefined;
  /** The store as messages name it. */
  readonly shown: string;
}

/** The flag of the store alone, for commands where it can be left out. */
export function storeUrlOption(): Option {
  const form = "sqlite:<path>, postgres://… or redis://…; with a password, by the environment alone";
  return new Option("--store-url <url>", form).env("STORE_URL");
}

/** Adds the flags that name a store, with the names that `table`, `schema` and `prefix` have by default. */
export function addStoreOptions(command: Command): Command {
  command.addOption(storeUrlOption());
  command.addOption(
    new Option(
      "--store-module <file>",
      "ES module with a store of one's own: createStore(), store or default",
    ).conflicts("storeUrl"),
  );
  return addNameOptions(command).option(
    "--prefix <name>",
    "Redis: prefix of the keys (default: countersign)",
  );
}

/** Adds the flag of what tells more about a key. */
export function addDescribeOption(command: Command): Command {
  return command.option(
    "--describe <file>",
    "module that exports describe(key, record): amount, beneficiary and more of a key",
  );
}

/** The flags of a store that stood on the command line: the environment gives the others to the next command too. */
export function givenFlags(command: Command, flags: StoreFlags): StoreFlags {
  const given = Object.entries(flags).filter(([name]) => command.getOptionValueSource(name) === "cli");
  return Object.fromEntries(given);
}

/** The flags of a database's tables. */
export function addNameOptions(command: Command): Command {
  return command
    .option("--schema <name>", "PostgreSQL: schema of the tables (default: public)")
    .option("--table <name>", "PostgreSQL, SQLite: prefix of the tables (default: countersign)");
}

/** Reads the flags. Throws a UsageError, also for a flag of another engine: it would look for the keys in the wrong place. */
export function readTarget(flags: StoreFlags): StoreTarget {
  const { schema, table, prefix } = flags;
  const location = locationOf(flags);
  const { engine } = location;
  if (schema !== undefined && engine !== "postgres") throw foreignFlag("--schema", location);
  if (table !== undefined && engine !== "postgres" && engine !== "sqlite")
    throw foreignFlag("--table", location);
  if (prefix !== undefined && engine !== "redis") throw foreignFlag("--prefix", location);
  return {
    location,
    schema,
    table,
    prefix,
    shown: location.shown + placeOf(engine, { schema, table, prefix }),
  };
}

function locationOf({ storeUrl, storeModule }: StoreFlags): StoreLocation {
  if (storeModule !== undefined) return parseStoreModule(storeModule);
  if (storeUrl !== undefined) return parseStoreUrl(storeUrl);
  throw new UsageError("required option '--store-url <url>' not specified; or give --store-module <file>");
}

function placeOf(
  engine: StoreLocation["engine"],
  { schema = "public", table = "countersign", prefix = "countersign" }: StoreFlags,
): string {
  if (engine === "module") return "";
  if (engine === "redis") return ` (prefix ${printable(prefix)})`;
  return ` (${printable(engine === "postgres" ? `tables ${schema}.${table}_*` : `tables ${table}_*`)})`;
}

/** The error about a flag that has no meaning for this store. */
export function foreignFlag(flag: string, { shown }: StoreLocation): UsageError {
  return new UsageError(`${flag}: means nothing for ${shown}`);
}
