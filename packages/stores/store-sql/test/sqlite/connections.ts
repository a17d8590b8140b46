import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterTest } from "@countersign/test-support/runs/after-test.ts";
import {
  type SqliteDatabase,
  type SqliteStores,
  type SqliteStoresOptions,
  createStores,
} from "@countersign/store-sql";
import Database from "libsql";
import { reportLeftOut } from "@countersign/test-support/servers/server-binaries.mjs";

export interface Connection extends SqliteDatabase {
  close(): unknown;
}
export type Open = (path: string) => Connection;

export const openLibsql: Open = (path) => new Database(path);

/** The drivers of this machine. node:sqlite comes with Node 22.13; below it there is nothing to test against. */
export const drivers: readonly (readonly [string, Open])[] = [
  ["libsql", openLibsql],
  ...nodeSqlite().map((open) => ["node:sqlite", open] as const),
];

export const databases: readonly (readonly [string, () => Connection])[] = drivers.flatMap(
  ([driver, open]) =>
    [
      [`${driver} on a file`, () => connect(temporaryFile(), open)],
      [`${driver} in memory`, () => connect(":memory:", open)],
    ] as const,
);

/** The path of a database file that goes with the test. */
export function temporaryFile(): string {
  const directory = mkdtempSync(join(tmpdir(), "sqlite-"));
  afterTest(() => rmSync(directory, { recursive: true }));
  return join(directory, "platform.db");
}

export function connect(path: string, open: Open = openLibsql): Connection {
  const connection = open(path);
  afterTest(() => connection.close());
  return connection;
}

/** Stores without a timer, closed with the test. */
export function openStores<Db extends SqliteDatabase>(
  database: Db,
  options?: Partial<SqliteStoresOptions<Db>>,
): SqliteStores<Db> {
  const stores = createStores({ database, pruneIntervalMs: 0, ...options });
  afterTest(() => stores.close());
  return stores;
}

export const dayMs = 86_400_000;

function nodeSqlite(): Open[] {
  const module: unknown = process.getBuiltinModule?.("node:sqlite");
  if (!hasDatabaseSync(module)) {
    reportLeftOut(
      `node:sqlite is missing in Node ${process.version}: the store of SQLite runs on libsql alone.`,
    );
    return [];
  }
  return [(path) => new module.DatabaseSync(path)];
}

function hasDatabaseSync(module: unknown): module is { DatabaseSync: new (path: string) => Connection } {
  return typeof module === "object" && module !== null && "DatabaseSync" in module;
}
