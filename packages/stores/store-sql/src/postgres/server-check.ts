import { publishNotice } from "@countersign/core/internal";
import type { Row } from "@countersign/idempotency/store";
import { integerOf } from "../sql/values.ts";
import { hasStandbys } from "./durability.ts";
import { postgresSchemaVersion } from "./migration.ts";
import { type ResolvedPostgresOptions, factoryName } from "./options.ts";
import { assertKeys, checkedTables, durableTables, missingKeys } from "./primary-keys.ts";
import { quoteLiteral } from "./table-names.ts";

/** Reads what {@link assertServer} checks. The parameters are `checkedTables`. */
export const readServer = `SELECT current_setting('server_version_num')::text AS version, current_setting('server_encoding') AS encoding,
  current_setting('fsync') AS fsync, current_setting('full_page_writes') AS full_page_writes, pg_is_in_recovery() AS standby,
  ${hasStandbys} AS is_synchronous,
  (SELECT count(*)::text FROM pg_class WHERE oid IN (${durableTables.map((_table, place) => `to_regclass($${place + 1})`).join(", ")}) AND relpersistence <> 'p') AS unlogged,
  ${missingKeys}`;

/** Reads what can change while the server runs. */
export const readStandbys: string = `SELECT ${hasStandbys} AS is_synchronous`;

const oldestVersion = 130_000;

/** What the version's own migration makes is there when its row is, unless a restore has left it out. */
export function readVersion({ names }: ResolvedPostgresOptions): string {
  const made = checkedTables(names)
    .map(quoteLiteral)
    .map((name) => `(${name}, to_regclass(${name}) IS NOT NULL)`);
  return `SELECT version::text AS version, oldest,
  (SELECT string_agg(name, ', ') FROM (VALUES ${made.join(", ")}) AS made (name, is_there) WHERE NOT is_there) AS missing
  FROM ${names.version} WHERE id = 1`;
}

/**
 * Throws unless the server is PostgreSQL 13 or newer, in UTF-8, and no standby. Its tables must survive a crash. Without fsync it throws in
 * production; elsewhere, and without full_page_writes, which some file systems do not need, it publishes `postgres-not-durable`.
 */
export function assertServer(row: Row, { names }: ResolvedPostgresOptions): void {
  const version = integerOf(row["version"]);
  if (version < oldestVersion) {
    throw new Error(
      `${factoryName}: PostgreSQL ${Math.floor(version / 10_000)} is too old, 13 or newer is needed`,
    );
  }
  if (row["encoding"] !== "UTF8") {
    throw new Error(
      `${factoryName}: the database has the encoding ${String(row["encoding"])}, in which different keys can become one; ` +
        "use a database with ENCODING 'UTF8'",
    );
  }
  if (row["standby"] !== false) {
    throw new Error(`${factoryName}: the server is a standby; connect the pool to the primary server`);
  }
  if (integerOf(row["unlogged"]) > 0) {
    throw new Error(
      `${factoryName}: tables ${names.place} are unlogged, a crash would empty them; run ALTER TABLE … SET LOGGED`,
    );
  }
  assertKeys(factoryName, row["missing_keys"]);
  assertDurable(row);
}

export function assertVersion(row: Row | undefined, { names }: ResolvedPostgresOptions): void {
  const version = row === undefined ? 0 : integerOf(row["version"]);
  if (version === postgresSchemaVersion) {
    if (typeof row?.["missing"] !== "string") return;
    throw new Error(`${factoryName}: missing: ${row["missing"]}; run: ${names.migrate}`);
  }
  const oldest = row?.["oldest"] ?? undefined;
  if (version > postgresSchemaVersion && oldest !== undefined && integerOf(oldest) <= postgresSchemaVersion) {
    return;
  }
  const remedy = version < postgresSchemaVersion ? `run: ${names.migrate}` : "upgrade @countersign/store-sql";
  throw new Error(
    `${factoryName}: the tables ${names.place} have schema version ${version}, this release needs ${postgresSchemaVersion}; ${remedy}`,
  );
}

function assertDurable(row: Row): void {
  const off = ["fsync", "full_page_writes"].filter((setting) => row[setting] !== "on");
  if (off.length === 0) return;
  const message = `${off.join(" and ")} off: after a crash of the server's machine, paid keys can be forgotten`;
  if (off.includes("fsync") && process.env["NODE_ENV"] === "production") {
    throw new Error(`${factoryName}: ${message}; run the server with fsync = on`);
  }
  publishNotice({ guard: factoryName, code: "postgres-not-durable", message });
}
