import { optional, type Environment } from "./environment.ts";
import { SettingError } from "./setting-error.ts";

/** One SQLite database for everything. */
export type SqliteLocation = { readonly kind: "sqlite"; readonly file: string } | { readonly kind: "memory" };

/** A PostgreSQL database for everything, or for everything but keys and nonces. */
export interface PostgresLocation {
  readonly kind: "postgres";
  /** May hold a password: never shown. */
  readonly url: string;
  /** Of the platform's tables. */
  readonly schema: string;
  /** Of the stores' tables; undefined leaves it to them. */
  readonly storesSchema?: string | undefined;
  /** Whose value `url` is. */
  readonly variable: "STORE_URL" | "DATABASE_URL";
}

/** A Redis for keys and nonces, and a PostgreSQL database for the rest. */
export interface RedisLocation {
  readonly kind: "redis";
  /** May hold a password: never shown. */
  readonly url: string;
  /** Whose value `url` is; REDIS_URL is the cluster's. */
  readonly variable: "STORE_URL" | "REDIS_URL";
  readonly keyPrefix: string;
  readonly payouts: PostgresLocation;
}

/** Where payouts, keys, nonces and events are kept. */
export type StoreLocation = SqliteLocation | PostgresLocation | RedisLocation;

const forms = "sqlite:<path> or memory:, or the URL of a PostgreSQL or Redis (postgres://…, redis://…)";
const postgresForm = "a postgres:// URL, with the special characters of its password percent-encoded";
const redisForm = "a redis:// or rediss:// URL, with the special characters of its password percent-encoded";

/** Reads STORE_URL and what belongs to its kind. Throws a SettingError, which shows no URL that may hold a password. */
export function readStore(env: Environment): StoreLocation {
  const text = env["STORE_URL"] ?? "sqlite:./data/platform.db";
  if (/^postgres(?:ql)?:/.test(text)) {
    refuse(env, ["KEY_PREFIX"], "STORE_URL is no redis:// URL");
    return postgresAt("STORE_URL", text, env);
  }
  if (/^rediss?:/.test(text)) return redisAt(text, env);
  const location = parseEmbedded(text);
  refuse(env, ["STORE_SCHEMA", "KEY_PREFIX"], `STORE_URL is ${location.kind}:`);
  return location;
}

function parseEmbedded(text: string): SqliteLocation {
  if (text === "memory:") return { kind: "memory" };
  const file = /^sqlite:(?<file>.+)$/.exec(text)?.groups?.["file"];
  if (file !== undefined && file.trim() !== "" && !file.startsWith(":") && !file.includes("\0")) {
    return { kind: "sqlite", file };
  }
  // The URL of another database may hold a password, also one without its scheme.
  throw new SettingError("STORE_URL", forms, /\/\/|@/.test(text) ? undefined : text);
}

function postgresAt(
  variable: PostgresLocation["variable"],
  text: string,
  env: Environment,
): PostgresLocation {
  const url = parsePostgresUrl(variable, text);
  const schema = optional("STORE_SCHEMA", env, parseSchema);
  return { kind: "postgres", url, schema: schema ?? "public", storesSchema: schema, variable };
}

function redisAt(text: string, env: Environment): RedisLocation {
  const url = parseRedisUrl("STORE_URL", text);
  const databaseUrl = env["DATABASE_URL"];
  if (databaseUrl === undefined) {
    const why = "because Redis keeps only keys and nonces";
    throw new SettingError("DATABASE_URL", `the postgres:// URL of a database for the payouts, ${why}`);
  }
  return {
    kind: "redis",
    url,
    variable: "STORE_URL",
    keyPrefix: optional("KEY_PREFIX", env, parseKeyPrefix) ?? "countersign",
    payouts: postgresAt("DATABASE_URL", databaseUrl, env),
  };
}

/** The URL as it is. Throws a SettingError, which shows nothing of it. */
export function parsePostgresUrl(variable: string, text: string): string {
  if (/^postgres(?:ql)?:\/\//.test(text) && isPlainUrl(text)) return text;
  throw new SettingError(variable, postgresForm);
}

/** The same for a Redis. */
export function parseRedisUrl(variable: string, text: string): string {
  if (!/^rediss?:\/\/[^/]/.test(text) || !isPlainUrl(text)) throw new SettingError(variable, redisForm);
  if (!/^\/?\d*$/.test(new URL(text).pathname)) {
    throw new SettingError(variable, "a Redis URL with the number of its database for a path, or with none");
  }
  return text;
}

// A password with one of # / ? in it ends early, and its rest would be taken for the path or the fragment.
function isPlainUrl(text: string): boolean {
  if (!URL.canParse(text) || text.includes("#")) return false;
  const { username, password, pathname, search } = new URL(text);
  return !/@|%40/i.test(pathname + search) && isDecodable(username) && isDecodable(password);
}

// Drivers differ in what they make of an escape that is none.
function isDecodable(text: string): boolean {
  try {
    decodeURIComponent(text);
    return true;
  } catch {
    return false;
  }
}

function parseSchema(variable: string, text: string): string {
  if (!/^(?!pg_)[a-z_][a-z0-9_]{0,62}$/.test(text)) {
    throw new SettingError(
      variable,
      "the name of a schema, of lower-case letters, digits and _, that does not begin with pg_",
      text,
    );
  }
  return text;
}

function parseKeyPrefix(variable: string, text: string): string {
  if (!/^[A-Za-z0-9_.:-]{1,64}$/.test(text)) {
    throw new SettingError(variable, "1 to 64 letters, digits and . : _ -", text);
  }
  return text;
}

function refuse(env: Environment, variables: readonly string[], why: string): void {
  for (const variable of variables) {
    if (env[variable] !== undefined) throw new SettingError(variable, `no value, because ${why}`);
  }
}
