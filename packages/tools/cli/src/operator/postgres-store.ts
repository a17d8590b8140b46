import { setTimeout } from "node:timers/promises";
import {
  createPostgresStores,
  migratePostgres,
  postgresMissingKeys,
  postgresMigration,
  postgresSchemaVersion,
} from "@countersign/store-postgres";
import type { Client, ClientConfig } from "pg";
import { UsageError } from "../command-io.ts";
import type { StoreCondition } from "../doctor/findings.ts";
import { printable } from "../printable.ts";
import { messageOf } from "../thrown.ts";
import { usageErrorOf } from "../usage-error.ts";
import { openedInTime, openTimeoutMs } from "./deadline.ts";
import { loadDriver } from "./load-driver.ts";
import type { OpenOptions, OperatorStore } from "./store.ts";
import type { ServerLocation } from "./store-location.ts";
import type { StoreTarget } from "./store-options.ts";

// Of the client: a pooler between it and the server refuses settings of a session.
const queryTimeoutMs = 60_000;
const goodbyeMs = 2_000;

type TableNames = Pick<StoreTarget, "schema" | "table">;

/** Connects, and checks that the tables are there in the version of this release. */
export async function openPostgresStore(
  location: ServerLocation,
  { schema, table }: TableNames,
  { retentionMs }: OpenOptions,
): Promise<OperatorStore> {
  postgresTables({ schema, table });
  const client = await connect(location, { query_timeout: queryTimeoutMs });
  try {
    const options = { pool: client, schema, table, retentionMs, pruneIntervalMs: 0 };
    const stores = createPostgresStores(options);
    await openedInTime(location.shown, stores.ready());
    return {
      ...stores,
      async close() {
        stores.close();
        await disconnect(client);
      },
    };
  } catch (error) {
    await disconnect(client);
    throw error;
  }
}

/** Asks a server how it keeps what it is told, and whether the tables are there in the version of this release. */
export async function inspectPostgres(
  location: ServerLocation,
  { schema = "public", table = "countersign" }: TableNames,
): Promise<StoreCondition> {
  postgresTables({ schema, table });
  const client = await connect(location, { query_timeout: queryTimeoutMs });
  try {
    const sentMs = Date.now();
    const { rows } = await client.query<ServerRow>(serverQuery, [`${table}\\_%`, schema]);
    const receivedMs = Date.now();
    const [row] = rows;
    if (row === undefined) throw new Error("the server said nothing about itself");
    const version = row.tables ? ((await readVersion(client, { schema, table })) ?? 0) : undefined;
    const missingKeys = await postgresMissingKeys(client, { schema, table });
    return {
      doubts: [
        ...serverDoubts(row),
        ...tableDoubts(version, `${schema}.${table}_*`),
        ...keyDoubts(missingKeys),
      ],
      clock: { theirsMs: Number(row.now_ms), sentMs, receivedMs },
      usable: version === postgresSchemaVersion && !row.standby,
    };
  } finally {
    await disconnect(client);
  }
}

/** What a server says of itself. */
export interface ServerRow {
  readonly version: string;
  readonly encoding: string;
  readonly fsync: string;
  readonly full_page_writes: string;
  readonly synchronous_commit: string;
  readonly standby: boolean;
  readonly unlogged: string;
  readonly tables: boolean;
  readonly now_ms: string;
}

const serverQuery = `SELECT current_setting('server_version_num') AS version, current_setting('server_encoding') AS encoding,
  current_setting('fsync') AS fsync, current_setting('full_page_writes') AS full_page_writes,
  current_setting('synchronous_commit') AS synchronous_commit, pg_is_in_recovery() AS standby,
  count(*) FILTER (WHERE relpersistence <> 'p')::text AS unlogged, bool_or(relname LIKE '%\\_schema') IS TRUE AS tables,
  (extract(epoch FROM clock_timestamp()) * 1000)::bigint::text AS now_ms
  FROM pg_class JOIN pg_namespace ON pg_namespace.oid = relnamespace
  WHERE relkind = 'r' AND relname LIKE $1 AND nspname = $2`;

const oldestVersion = 130_000;

/** What is wrong with a server. */
export function serverDoubts(row: ServerRow): StoreCondition["doubts"] {
  const doubts: [StoreCondition["doubts"][number][0], string][] = [];
  if (row.fsync !== "on") {
    doubts.push(["postgres-fsync", "fsync is off: after a crash of the machine, paid keys can be forgotten"]);
  }
  if (row.full_page_writes !== "on") {
    doubts.push(["postgres-full-page-writes", "full_page_writes is off: a crash can leave half a page"]);
  }
  if (row.synchronous_commit === "off") {
    const message =
      "synchronous_commit is off: the stores turn it on for their own statements, and nobody for yours";
    doubts.push(["postgres-synchronous-commit", message]);
  }
  if (row.standby) doubts.push(["postgres-standby", "the server is a standby, which takes no claim"]);
  if (row.encoding !== "UTF8") {
    doubts.push([
      "postgres-encoding",
      `the database has the encoding ${row.encoding}, in which two keys can be one`,
    ]);
  }
  if (Number(row.version) < oldestVersion) {
    doubts.push(["postgres-old", `PostgreSQL ${Math.floor(Number(row.version) / 10_000)} is too old`]);
  }
  if (row.unlogged !== "0") doubts.push(["tables-unlogged", "tables are unlogged: a crash empties them"]);
  return doubts;
}

function tableDoubts(version: number | undefined, place: string): StoreCondition["doubts"] {
  if (version === undefined) return [["tables-missing", `there are no tables ${place}`]];
  if (version === postgresSchemaVersion) return [];
  const message = `the tables ${place} have schema version ${version}, this release needs ${postgresSchemaVersion}`;
  return [[version < postgresSchemaVersion ? "migration-pending" : "tables-newer", message]];
}

function keyDoubts(missingKeys: string | undefined): StoreCondition["doubts"] {
  if (missingKeys === undefined) return [];
  return [["tables-without-key", `tables have lost their primary key: ${missingKeys}`]];
}

/** The SQL of the tables. Throws a UsageError. */
export function postgresTables({ schema, table }: TableNames): string {
  try {
    return postgresMigration({ schema, table });
  } catch (error) {
    throw usageErrorOf(error);
  }
}

/** What a migration has left. */
export interface Migration {
  readonly version: number;
  /** What was missing before. Of several migrations at once, each may have found it missing. */
  readonly created: "nothing" | "tables" | "schema and tables";
  /** The schema version that was there, when it was another one. */
  readonly updatedFrom?: number;
}

/** Creates the tables or brings them up to date, as long as it takes. */
export async function migrateTables(location: ServerLocation, names: TableNames): Promise<Migration> {
  postgresTables(names);
  const client = await connect(location, { query_timeout: 0 });
  try {
    const created = await missingParts(client, names);
    const found = created === "nothing" ? await readVersion(client, names) : undefined;
    await migratePostgres(client, names);
    const migration = { version: postgresSchemaVersion, created };
    return found === undefined || found === postgresSchemaVersion
      ? migration
      : { ...migration, updatedFrom: found };
  } finally {
    await disconnect(client);
  }
}

async function missingParts(
  client: Client,
  { schema = "public", table = "countersign" }: TableNames,
): Promise<Migration["created"]> {
  const { rowCount: schemas } = await client.query("SELECT FROM pg_namespace WHERE nspname = $1", [schema]);
  if (schemas === 0) return "schema and tables";
  const query =
    "SELECT FROM pg_class JOIN pg_namespace ON pg_namespace.oid = relnamespace WHERE nspname = $1 AND relname = $2";
  const { rowCount: tables } = await client.query(query, [schema, `${table}_schema`]);
  return tables === 0 ? "tables" : "nothing";
}

async function readVersion(
  client: Client,
  { schema = "public", table = "countersign" }: TableNames,
): Promise<number | undefined> {
  const place = [schema, `${table}_schema`].map((name) => client.escapeIdentifier(name)).join(".");
  const { rows } = await client.query<{ version: number }>(`SELECT version FROM ${place} WHERE id = 1`);
  return rows[0]?.version;
}

/** Gives a server that hangs a moment to say goodbye; the process does not wait for it any longer. */
async function disconnect(client: Client): Promise<void> {
  const late = new AbortController();
  const ended = client.end().catch(() => {});
  await Promise.race([ended, setTimeout(goodbyeMs, undefined, { signal: late.signal }).catch(() => {})]);
  late.abort();
  // Missing in the types of pg.
  const { unref }: { readonly unref?: unknown } = client as object;
  if (typeof unref === "function") Reflect.apply(unref, client, []);
}

async function connect({ url, hide }: ServerLocation, config: ClientConfig): Promise<Client> {
  const { default: pg } = await loadDriver("pg", () => import("pg"));
  let client: Client;
  try {
    client = new pg.Client({
      connectionString: url,
      connectionTimeoutMillis: openTimeoutMs,
      application_name: "countersign",
      ...config,
    });
  } catch (error) {
    throw new UsageError(`--store-url: ${printable(hide(messageOf(error)))}`, { cause: error });
  }
  // A connection that breaks fails the query that runs or comes next; without a listener it would end the process.
  client.on("error", () => {});
  await client.connect();
  return client;
}
