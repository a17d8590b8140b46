import {
  mysqlMigration,
  mysqlSchemaVersion,
  postgresMigration,
  postgresSchemaVersion,
} from "@countersign/store-sql";
import type { describe } from "@jest/globals";
import { createPool } from "mysql2/promise";
import { Pool } from "pg";
import {
  describeOnMysql,
  describeOnPostgres,
  isolatedName,
  mysqlUrl,
  postgresUrl,
} from "@countersign/test-support/servers/engines.ts";
import { mysqlEngine } from "../src/operator/mysql-store.ts";
import { postgresEngine } from "../src/operator/postgres-store.ts";
import type { Engine } from "../src/operator/store.ts";
import { dropMysqlTables } from "./operator-bench.ts";

export const tableNames: readonly string[] = [
  "answers",
  "idempotency",
  "lanes",
  "newest",
  "nonces",
  "queues",
  "schema",
  "tasks",
];

/** A place on a server for the tables of one test, which are not there yet. */
export interface Place {
  readonly flags: { readonly schema?: string; readonly table?: string };
  /** The tables in messages, as a regular expression. */
  readonly shown: string;
  /** The names of the tables begin with it. */
  readonly prefix: string;
  readonly migration: string;
  readonly query: (sql: string) => Promise<unknown>;
  readonly tables: () => Promise<readonly string[]>;
  /** Keeps a table locked until the answer is called. */
  readonly lock: (table: string) => Promise<() => Promise<void>>;
  readonly close: () => Promise<void>;
}

function placeOnPostgres(): Place {
  const schema = isolatedName("mig");
  const pool = new Pool({ connectionString: postgresUrl ?? "", max: 3 });
  const tables = `SELECT table_name AS name FROM information_schema.tables WHERE table_schema = '${schema}' ORDER BY 1`;
  return {
    flags: { schema },
    shown: `${schema}\\.countersign_\\*`,
    prefix: `${schema}.countersign_`,
    migration: postgresMigration({ schema }),
    query: (sql) => pool.query(sql),
    tables: async () => (await pool.query<{ name: string }>(tables)).rows.map(({ name }) => name),
    async lock(table) {
      const blocker = await pool.connect();
      await blocker.query(`BEGIN; LOCK TABLE ${table} IN ACCESS EXCLUSIVE MODE`);
      return async () => {
        await blocker.query("ROLLBACK");
        blocker.release();
      };
    },
    async close() {
      await pool.query(`DROP SCHEMA IF EXISTS ${schema} CASCADE`);
      await pool.end();
    },
  };
}

function placeOnMysql(): Place {
  const table = isolatedName("mig");
  const pool = createPool({ uri: mysqlUrl ?? "", connectionLimit: 3, multipleStatements: true });
  const tables = `SELECT table_name AS name FROM information_schema.tables WHERE table_schema = DATABASE() AND table_name LIKE '${table}\\_%' ORDER BY 1`;
  return {
    flags: { table },
    shown: `${table}_\\*`,
    prefix: `${table}_`,
    migration: mysqlMigration({ table }),
    query: (sql) => pool.query(sql),
    async tables() {
      const [rows] = await pool.query(tables);
      return (rows as { name: string }[]).map(({ name }) => name);
    },
    async lock(locked) {
      const blocker = await pool.getConnection();
      await blocker.query(`LOCK TABLES ${locked} WRITE`);
      return async () => {
        await blocker.query("UNLOCK TABLES");
        blocker.release();
      };
    },
    async close() {
      await dropMysqlTables((sql) => pool.query(sql), table);
      await pool.end();
    },
  };
}

interface SqlServer {
  readonly name: string;
  readonly describe: typeof describe.skip;
  readonly url: string;
  readonly port: number;
  readonly engine: Engine;
  readonly says: { readonly engine: string; readonly version: number };
  readonly open: () => Place;
  /** What makes the tables those of a later release that takes no other one beside it. */
  readonly later: string;
  readonly createUser: (user: string) => string;
}

export const sqlServers: readonly SqlServer[] = [
  {
    name: "PostgreSQL",
    describe: describeOnPostgres,
    url: postgresUrl ?? "",
    port: 5432,
    engine: postgresEngine,
    says: { engine: "postgres", version: postgresSchemaVersion },
    open: placeOnPostgres,
    later: "version = 99, oldest = 99",
    createUser: (user) => `CREATE ROLE ${user} LOGIN PASSWORD 's3cret'`,
  },
  {
    name: "MariaDB",
    describe: describeOnMysql,
    // The other tests write mysql:.
    url: mysqlUrl?.replace(/^mysql:/, "mariadb:") ?? "",
    port: 3306,
    engine: mysqlEngine,
    says: { engine: "mysql", version: mysqlSchemaVersion },
    open: placeOnMysql,
    later: "version = 99",
    createUser: (user) => `CREATE USER ${user} IDENTIFIED BY 's3cret'`,
  },
];

export function flagsOf({ url }: SqlServer, { flags }: Place): readonly string[] {
  return ["--store-url", url, ...Object.entries(flags).flatMap(([name, value]) => [`--${name}`, value])];
}
