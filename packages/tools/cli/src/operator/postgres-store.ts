import {
  createPostgresStores,
  createPostgresWork,
  migratePostgres,
  postgresMissingKeys,
  postgresMigration,
  postgresSchemaVersion,
} from "@countersign/store-postgres";
import type { Client, ClientConfig } from "pg";
import { inWordsOfFlags, type Texts } from "../command-io.ts";
import {
  doubtsOf,
  isUsableVersion,
  schemaVersionOf,
  type Row,
  type SchemaVersion,
  type StoreCondition,
  versionDoubts,
} from "../doctor/findings.ts";
import { loadDriver } from "../load-package.ts";
import type { Engine, Migration, OperatorStore } from "./store.ts";
import {
  goodbyeMs,
  openedInTime,
  openTimeoutMs,
  queryTimeoutMs,
  withinTime,
  wrongPlace,
} from "./store-failure.ts";
import { refusingUrl, type StoreLocation, type StoreTarget } from "./store-target.ts";

type TableNames = Texts<"schema" | "table">;

export const postgresEngine: Engine = { open, inspect };

async function open(target: StoreTarget, retentionMs: number | undefined): Promise<OperatorStore> {
  const { location, schema, table } = target;
  postgresTables({ schema, table });
  // Set on the client: a pooler before the server refuses session settings.
  const client = await connect(location, { query_timeout: queryTimeoutMs });
  const elsewhere = async (): Promise<string[]> => {
    const own = `${schema ?? "countersign"}.${table ?? "countersign"}_*`;
    const { rows } = await client.query<{ place: string }>(placesQuery, [own]);
    return rows.map(({ place }) => place);
  };
  try {
    const options = { pool: client, schema, table, retentionMs, pruneIntervalMs: 0 };
    const stores = createPostgresStores(options);
    await openedInTime(location.shown, stores.ready());
    const work = createPostgresWork(options);
    return {
      ...stores,
      work,
      elsewhere,
      async close() {
        work.close();
        stores.close();
        await disconnect(client);
      },
    };
  } catch (error) {
    const missing = { missing: "42P01", flags: "--schema and --table", elsewhere };
    const failure = await wrongPlace(target, error, missing);
    await disconnect(client);
    throw failure;
  }
}

const placesQuery = `SELECT place FROM pg_catalog.pg_class AS c JOIN pg_catalog.pg_namespace AS n ON n.oid = relnamespace,
    concat(nspname, '.', left(relname, -length('idempotency')), '*') AS place
  WHERE relkind IN ('r', 'p') AND relname LIKE '%\\_idempotency' AND place <> $1
    AND EXISTS (SELECT FROM pg_catalog.pg_class AS other
      WHERE other.relnamespace = n.oid AND other.relname = left(c.relname, -length('idempotency')) || 'schema')
  ORDER BY place LIMIT 5`;

async function inspect(target: StoreTarget): Promise<StoreCondition> {
  const { location, schema = "countersign", table = "countersign" } = target;
  return await connected(location, { schema, table }, queryTimeoutMs, async (client) => {
    const sentMs = Date.now();
    const { rows } = await client.query<ServerRow>(serverQuery, [`${table}\\_%`, schema]);
    const receivedMs = Date.now();
    const [row] = rows;
    if (row === undefined) throw new Error("the server said nothing about itself");
    const version = await readVersion(client, { schema, table });
    const missingKeys = await postgresMissingKeys(client, { schema, table });
    const doubts = [
      ...doubtsOf(serverRows, row),
      ...versionDoubts(version, postgresSchemaVersion, `${schema}.${table}_*`),
    ];
    if (missingKeys !== undefined)
      doubts.push(["tables-without-key", `tables have lost their primary key: ${missingKeys}`]);
    return {
      doubts,
      clock: { theirsMs: Number(row.now_ms), sentMs, receivedMs },
      usable: isUsableVersion(version, postgresSchemaVersion) && !row.standby,
    };
  });
}

export type ServerRow = Readonly<Record<ServerFact, string>> & { readonly standby: boolean };
type ServerFact =
  | "version"
  | "encoding"
  | "fsync"
  | "full_page_writes"
  | "synchronous_commit"
  | "unlogged"
  | "now_ms";

const serverQuery = `SELECT current_setting('server_version_num') AS version, current_setting('server_encoding') AS encoding,
  current_setting('fsync') AS fsync, current_setting('full_page_writes') AS full_page_writes,
  current_setting('synchronous_commit') AS synchronous_commit, pg_is_in_recovery() AS standby,
  count(*) FILTER (WHERE relpersistence <> 'p')::text AS unlogged,
  (extract(epoch FROM clock_timestamp()) * 1000)::bigint::text AS now_ms
  FROM pg_class JOIN pg_namespace ON pg_namespace.oid = relnamespace
  WHERE relkind = 'r' AND relname LIKE $1 AND nspname = $2`;

export const serverRows: readonly Row<ServerRow>[] = [
  [
    "postgres-fsync",
    ({ fsync }) => fsync !== "on" && "fsync is off: after a crash of the machine, paid keys can be forgotten",
  ],
  [
    "postgres-full-page-writes",
    (row) => row.full_page_writes !== "on" && "full_page_writes is off: a crash can leave half a page",
  ],
  [
    "postgres-synchronous-commit",
    (row) =>
      row.synchronous_commit === "off" &&
      "synchronous_commit is off: the stores turn it on for their own statements, and nobody for yours",
  ],
  ["postgres-standby", ({ standby }) => standby && "the server is a standby, which takes no claim"],
  [
    "postgres-encoding",
    ({ encoding }) =>
      encoding !== "UTF8" && `the database has the encoding ${encoding}, in which two keys can be one`,
  ],
  ["postgres-old", ({ version }) => Number(version) < 130_000 && "PostgreSQL is older than 13"],
  ["tables-unlogged", ({ unlogged }) => unlogged !== "0" && "tables are unlogged: a crash empties them"],
];

export function postgresTables({ schema, table }: TableNames): string {
  return inWordsOfFlags(() => postgresMigration({ schema, table }));
}

/** Creates the tables or brings them up to date, however long it takes. */
export async function migrateTables(location: StoreLocation, names: TableNames): Promise<Migration> {
  return await connected(location, names, 0, async (client) => {
    const before = (await readVersion(client, names))?.version ?? null;
    await migratePostgres(client, names);
    // Tables of a later release that takes this one beside it are left as they are.
    const version = (await readVersion(client, names))?.version ?? postgresSchemaVersion;
    return { version, before };
  });
}

async function readVersion(
  client: Client,
  { schema = "countersign", table = "countersign" }: TableNames,
): Promise<SchemaVersion | undefined> {
  const place = [schema, `${table}_schema`].map((name) => client.escapeIdentifier(name)).join(".");
  const tables = await client.query<{ there: boolean }>("SELECT to_regclass($1) IS NOT NULL AS there", [
    place,
  ]);
  if (tables.rows[0]?.there !== true) return undefined;
  const { rows } = await client.query(`SELECT version, oldest FROM ${place} WHERE id = 1`);
  return schemaVersionOf(rows[0]);
}

/** Checks the names of the tables before it connects. */
async function connected<T>(
  location: StoreLocation,
  names: TableNames,
  timeoutMs: number,
  work: (client: Client) => Promise<T>,
): Promise<T> {
  postgresTables(names);
  const client = await connect(location, { query_timeout: timeoutMs });
  try {
    return await work(client);
  } finally {
    await disconnect(client);
  }
}

async function connect(location: StoreLocation, config: ClientConfig): Promise<Client> {
  const { default: pg } = await loadDriver("pg", () => import("pg"));
  const connectionString = location.address;
  const common = { connectionTimeoutMillis: openTimeoutMs, application_name: "countersign" };
  const client = refusingUrl(location, () => new pg.Client({ connectionString, ...common, ...config }));
  // A broken connection fails the running or next query; without a listener it would end the process.
  client.on("error", () => {});
  await client.connect();
  return client;
}

/** Gives a hanging server a moment to say goodbye; then the process ends without it. */
async function disconnect(client: Client): Promise<void> {
  await withinTime(goodbyeMs, client.end(), (why) => new Error(why)).catch(() => {});
  // Missing in the types of pg.
  const { unref }: { readonly unref?: unknown } = client as object;
  if (typeof unref === "function") Reflect.apply(unref, client, []);
}
