import path from "node:path";
import { UsageError } from "../command-io.ts";
import { printable } from "../printable.ts";

/** Where a store is. `shown` names it in messages, without credentials. */
export type StoreLocation = FileLocation<"sqlite"> | FileLocation<"module"> | ServerLocation;

/** A database of SQLite, or a module with a store of somebody's own. */
export interface FileLocation<Engine extends "sqlite" | "module"> {
  readonly engine: Engine;
  /** Absolute. */
  readonly file: string;
  readonly shown: string;
}

/** A store behind a connection; `url` holds the credentials and is for the driver alone. */
export interface ServerLocation {
  readonly engine: "postgres" | "redis";
  readonly url: string;
  readonly shown: string;
  /** Takes the credentials of the URL out of a driver's message. */
  readonly hide: (text: string) => string;
}

const flag = "--store-url";
const expected = "sqlite:<path>, postgres://…, postgresql://…, redis://… or rediss://…";
const engines: ReadonlyMap<string, ServerLocation["engine"]> = new Map([
  ["postgres:", "postgres"],
  ["postgresql:", "postgres"],
  ["redis:", "redis"],
  ["rediss:", "redis"],
]);

/** Reads the value of `--store-url`. Throws a UsageError, which shows nothing of the value: it may hold a password. */
export function parseStoreUrl(text: string): FileLocation<"sqlite"> | ServerLocation {
  if (text.startsWith("memory:")) {
    throw new UsageError(`${flag}: a store in memory lives inside its process; no command can reach it`);
  }
  const file = text.startsWith("sqlite:") ? text.slice("sqlite:".length) : undefined;
  if (file?.trim() === "" || file === ":memory:")
    throw new UsageError(`${flag}: expected sqlite:<path> of a file`);
  if (file === undefined) return serverLocation(text);
  // Absolute, as libsql takes what looks like a URL for the address of a server.
  const absolute = path.resolve(file);
  return { engine: "sqlite", file: absolute, shown: `sqlite:${printable(absolute)}` };
}

/** The file of `--store-module`, from the folder of whoever calls. */
export function parseStoreModule(file: string): FileLocation<"module"> {
  const absolute = path.resolve(file);
  return { engine: "module", file: absolute, shown: `module:${printable(absolute)}` };
}

function serverLocation(text: string): ServerLocation {
  if (!URL.canParse(text)) throw new UsageError(`${flag}: expected ${expected}`);
  const url = new URL(text);
  const engine = engines.get(url.protocol);
  if (engine === undefined) throw new UsageError(`${flag}: expected ${expected}`);
  // The driver would take this machine for a host that is missing. PostgreSQL's can stand in ?host=.
  if (engine === "redis" && url.host === "") throw new UsageError(`${flag}: expected redis://<host>`);
  // A password with one of / ? # in it ends the host early, and its rest would be shown as path or port.
  if (url.hash !== "" || /@|%40/i.test(url.pathname + url.search) || !isEncoded(url)) {
    throw new UsageError(`${flag}: percent-encode the characters @ : / ? # % of a user name or password`);
  }
  if (engine === "redis" && !/^\/?\d*$/.test(url.pathname)) {
    throw new UsageError(
      `${flag}: expected the number of a database behind redis://<host>:<port>/, or nothing`,
    );
  }
  const secrets = secretsOf(url);
  return {
    engine,
    url: text,
    shown: `${url.protocol}//${userOf(url, engine)}${url.host}${url.pathname}`,
    hide: (message) => secrets.reduce((hidden, secret) => hidden.replaceAll(secret, "…"), message),
  };
}

// Of Redis, some put the password where the user name stands.
function userOf({ username }: URL, engine: ServerLocation["engine"]): string {
  return engine === "redis" || username === "" ? "" : `${username}@`;
}

function secretsOf(url: URL): string[] {
  const named = ["password", "sslpassword"].flatMap((name) => url.searchParams.getAll(name));
  const given = [url.password, ...(url.protocol.startsWith("redis") ? [url.username] : []), ...named];
  return given.flatMap((secret) => [secret, decoded(secret)]).filter((secret) => secret !== "");
}

// Drivers differ in what they make of an escape that is none.
function isEncoded({ username, password, search }: URL): boolean {
  return !/%(?![0-9a-f]{2})/i.test(username + password + search);
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    // Bytes that are no UTF-8.
    return text;
  }
}
