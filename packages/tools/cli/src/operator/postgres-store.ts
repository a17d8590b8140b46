import {
  createPostgresStores,
  migratePostgres,
  postgresMissingKeys,
  postgresMigration,
  postgresSchemaVersion,
} from "@countersign/store-postgres";
import type { Client, ClientConfig } from "pg";
import { inWordsOfFlags, type Texts } from "../command-io.ts";
import { doubtsOf, versionDoubts, type Row, type StoreCondition } from "../doctor/findings.ts";
import { loadDriver } from "../load-package.ts";
import type { Engine, OperatorStore } from "./store.ts";
import { openedInTime, openTimeoutMs, withinTime } from "./store-failure.ts";
import { refusingUrl, type StoreLocation, type StoreTarget } from "./store-target.ts";

// Set on the client: a pooler before the server refuses session settings.
const queryTimeoutMs = 60_000;
const goodbyeMs = 2_000;

type TableNames = Texts<"schema" | "table">;

export const postgresEngine: Engine = { open, inspect };

async function open(
  { location, schema, table }: StoreTarget,
  retentionMs: number | undefined,
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

async function inspect(target: StoreTarget): Promise<StoreCondition> {
  const { location, schema = "public", table = "countersign" } = target;
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
      usable: version === postgresSchemaVersion && !row.standby,
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

interface Migration {
  readonly version: number;
  /** The schema version before; null if there were no tables. Each of several concurrent migrations may report null. */
  readonly before: number | null;
}

/** Creates the tables or brings them up to date, however long it takes. */
export async function migrateTables(location: StoreLocation, names: TableNames): Promise<Migration> {
  return await connected(location, names, 0, async (client) => {
    const before = (await readVersion(client, names)) ?? null;
    await migratePostgres(client, names);
    return { version: postgresSchemaVersion, before };
  });
}

async function readVersion(
  client: Client,
  { schema = "public", table = "countersign" }: TableNames,
): Promise<number | undefined> {
  const place = [schema, `${table}_schema`].map((name) => client.escapeIdentifier(name)).join(".");
  const found = await client.query<{ there: boolean }>("SELECT to_regclass($1) IS NOT NULL AS there", [
    place,
  ]);
  if (found.rows[0]?.there !== true) return undefined;
  const { rows } = await client.query<{ version: number }>(`SELECT version FROM ${place} WHERE id = 1`);
  return rows[0]?.version ?? 0;
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
