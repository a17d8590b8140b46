import path from "node:path";
import { Option, type Command } from "commander";
import { flagOf, messageOf, UsageError, type Texts } from "../command-io.ts";
import { printable } from "../output.ts";
import { shellWord } from "./key-text.ts";

export type StoreFlags = Texts<"storeUrl" | "storeModule" | "schema" | "table" | "prefix">;

export type EngineName = "sqlite" | "postgres" | "mysql" | "redis" | "module";

export interface StoreLocation {
  readonly engine: EngineName;
  /** An absolute path, or a server's URL with credentials, which only the driver may see. */
  readonly address: string;
  /** For messages, without credentials. */
  readonly shown: string;
  /** Takes the credentials out of a driver's message. */
  readonly hide: (text: string) => string;
}

/** `shown` also names the place at the location. */
export interface StoreTarget extends Texts<"schema" | "table" | "prefix"> {
  readonly location: StoreLocation;
  readonly shown: string;
}

export function storeUrlOption(): Option {
  const form =
    "sqlite:<path>, postgres://…, mysql://… or redis://…; with a password, by the environment alone";
  return new Option("--store-url <url>", form).env("STORE_URL");
}

export function addStoreOptions(command: Command): Command {
  command.addOption(storeUrlOption());
  command.addOption(
    new Option("--store-module <file>", "module that exports createStore(), a store of one's own").conflicts(
      "storeUrl",
    ),
  );
  return addNameOptions(command).option(
    "--prefix <name>",
    "Redis: prefix of the keys (default: countersign)",
  );
}

export function addNameOptions(command: Command): Command {
  return command
    .option("--schema <name>", "PostgreSQL: schema of the tables (default: countersign)")
    .option("--table <name>", "PostgreSQL, MariaDB, SQLite: prefix of the tables (default: countersign)");
}

const places = ["schema", "table", "prefix"] as const;
const placesOf: Readonly<Record<EngineName, readonly (typeof places)[number][]>> = {
  postgres: ["schema", "table"],
  mysql: ["table"],
  sqlite: ["table"],
  redis: ["prefix"],
  module: [],
};

/** Those that say where in a store the keys are. */
export function placeFlags({ engine }: StoreLocation): string {
  return placesOf[engine].map(flagOf).join(" and ");
}

const missingUrl = "required option '--store-url <url>' not specified, nor STORE_URL";

/** Throws a UsageError, also for another engine's flag: it would look for the keys in the wrong place. */
export function readTarget(flags: StoreFlags): StoreTarget {
  const { storeUrl, storeModule, schema, table, prefix } = flags;
  if (storeModule === undefined && storeUrl === undefined)
    throw new UsageError(`${missingUrl}; or give --store-module <file>`);
  const location =
    storeModule === undefined ? parseStoreUrl(storeUrl ?? "") : fileLocation("module", storeModule);
  for (const name of places) {
    if (flags[name] !== undefined && !placesOf[location.engine].includes(name))
      throw foreignFlag(`--${name}`, location);
  }
  return { location, schema, table, prefix, shown: location.shown + placeOf(location.engine, flags) };
}

/** As {@link readTarget}, for a command without --store-module. */
export function readUrlTarget(flags: Omit<StoreFlags, "storeModule">): StoreTarget {
  if (flags.storeUrl !== undefined) return readTarget(flags);
  throw new UsageError(missingUrl);
}

/** The store's flags as typed, for the next command; the environment gives it the others. Leaves out a URL's password. */
export function givenStoreFlags(command: Command, { location }: StoreTarget): string[] {
  const { storeUrl, ...others } = command.opts<StoreFlags>();
  const values: StoreFlags = { storeUrl: storeUrl && location.hide(storeUrl), ...others };
  return (["storeUrl", "storeModule", ...places] as const).flatMap((name) => {
    const value = values[name];
    if (value === undefined || command.getOptionValueSource(name) !== "cli") return [];
    return [`${flagOf(name)} ${printable(shellWord(value))}`];
  });
}

function placeOf(
  engine: EngineName,
  { schema = "countersign", table = "countersign", prefix = "countersign" }: StoreFlags,
): string {
  if (engine === "module") return "";
  if (engine === "redis") return ` (prefix ${printable(prefix)})`;
  return ` (${printable(engine === "postgres" ? `tables ${schema}.${table}_*` : `tables ${table}_*`)})`;
}

export function foreignFlag(flag: string, { shown }: StoreLocation): UsageError {
  return new UsageError(`${flag}: means nothing for ${shown}`);
}

const flag = "--store-url";
const schemes: ReadonlyMap<string, EngineName> = new Map([
  ["postgres:", "postgres"],
  ["postgresql:", "postgres"],
  ["mysql:", "mysql"],
  ["mariadb:", "mysql"],
  ["redis:", "redis"],
  ["rediss:", "redis"],
]);

/** Throws a UsageError, which shows nothing of the value: it may hold a password. */
export function parseStoreUrl(text: string): StoreLocation {
  if (text.startsWith("memory:"))
    throw new UsageError(`${flag}: a store in memory lives inside its process; no command can reach it`);
  if (!text.startsWith("sqlite:")) return serverLocation(text);
  const file = text.slice("sqlite:".length);
  if (file.trim() === "" || file === ":memory:")
    throw new UsageError(`${flag}: expected sqlite:<path> of a file`);
  return fileLocation("sqlite", file);
}

function fileLocation(engine: "sqlite" | "module", file: string): StoreLocation {
  // Absolute: libsql takes what looks like a URL for a server's address.
  const address = path.resolve(file);
  return { engine, address, shown: `${engine}:${printable(address)}`, hide: (message) => message };
}

function serverLocation(text: string): StoreLocation {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  const engine = schemes.get(url?.protocol ?? "");
  if (url === undefined || engine === undefined) {
    const forms =
      "sqlite:<path>, postgres://…, postgresql://…, mysql://…, mariadb://…, redis://… or rediss://…";
    throw new UsageError(`${flag}: expected ${forms}`);
  }
  const { protocol, username, password, host, pathname, search, hash, searchParams } = url;
  // Without a host the driver would use this machine. PostgreSQL's host can stand in ?host=.
  if (engine === "redis" && host === "") throw new UsageError(`${flag}: expected redis://<host>`);
  // An unescaped / ? # in a password ends the host early, and the rest would be shown as path or port. Drivers differ on invalid escapes.
  const isEncoded = !/%(?![0-9a-f]{2})/i.test(username + password + search);
  if (hash !== "" || /@|%40/i.test(pathname + search) || !isEncoded) {
    throw new UsageError(`${flag}: percent-encode the characters @ : / ? # % of a user name or password`);
  }
  if (engine === "mysql") assertMysql(url);
  if (engine === "redis" && !/^\/?\d*$/.test(pathname)) {
    throw new UsageError(
      `${flag}: expected the number of a database after redis://<host>:<port>/, or nothing`,
    );
  }
  // With Redis, some put the password in place of the user name.
  const user = engine === "redis" || username === "" ? "" : `${username}@`;
  const written = search.slice(1).split("&").filter(Boolean);
  const named = [...searchParams].flatMap(([name, value], index) =>
    secretParameters.has(name) ? [value, written[index]?.replace(/^[^=]*=?/, "") ?? ""] : [],
  );
  const secrets = [password, ...(engine === "redis" ? [username] : []), ...named]
    .flatMap((secret) => [secret, decoded(secret)])
    .filter((secret) => secret !== "");
  return {
    engine,
    address: text,
    shown: `${protocol}//${user}${host}${pathname}`,
    hide: (message) => secrets.reduce((hidden, secret) => hidden.replaceAll(secret, "…"), message),
  };
}

const secretParameters: ReadonlySet<string> = new Set(["password", "sslpassword"]);

// By these the driver would go to another place than is shown, print packets, or answer in another form.
const steeringParameters =
  /^(?:uri|host|port|user|database|socketPath|password\w*|debug|rowsAsArray|nestTables|typeCast)$/;

function assertMysql({ protocol, host, pathname, searchParams }: URL): void {
  if (host === "" || !/^\/[^/]+$/.test(pathname))
    throw new UsageError(`${flag}: expected ${protocol}//<host>/<database>`);
  for (const [name, value] of searchParams) {
    if (steeringParameters.test(name))
      throw new UsageError(`${flag}: takes no parameter ${name} with MariaDB`);
    if (name === "ssl" && /key|pass|pfx/i.test(value))
      throw new UsageError(`${flag}: takes no key or password in ssl`);
  }
}

/** The driver's complaint about the URL becomes a UsageError, without credentials. */
export function refusingUrl<T>({ hide }: StoreLocation, make: () => T): T {
  try {
    return make();
  } catch (error) {
    throw new UsageError(`${flag}: ${printable(hide(messageOf(error)))}`, { cause: error });
  }
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    // Bytes that are no UTF-8.
    return text;
  }
}
