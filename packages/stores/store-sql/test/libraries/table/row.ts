import { randomBytes } from "node:crypto";
import type { describe } from "@jest/globals";
import type { Database } from "@countersign/idempotency";
import {
  describeOnMysql,
  describeOnPostgres,
  mysqlUrl,
  postgresUrl,
} from "@countersign/test-support/servers/engines.ts";

export interface Opened<Tx> {
  readonly database: Database<Tx>;
  /** Inserts as a handler does, through the library's own model of the table. */
  insertByHandler(tx: Tx, id: string): Promise<unknown>;
  /** Sends one statement as a handler does, through the library's own way for SQL. */
  exec(tx: Tx, text: string): PromiseLike<unknown>;
  /** Runs `work` in the library's own nested transaction, where it has any. */
  nest?(tx: Tx, work: (inner: Tx) => Promise<void>): Promise<unknown>;
  countRows(): Promise<number>;
  readonly table: string;
  /** What a caller could take for the transaction. */
  readonly nonTransaction: unknown;
  end(): Promise<void>;
}

/**
 * What not every library can: nested transactions; several statements with their rows; an isolation level set inside of the transaction.
 */
export type Feature = "nesting" | "script" | "setting the isolation";

export interface TableRow<Tx> {
  readonly name: string;
  readonly engine: Database<Tx>["dialect"];
  readonly lacks?: readonly Feature[];
  /** Whether it rejects where COMMIT was answered with ROLLBACK. */
  readonly tellsRollback?: boolean;
  /** How many messages a payment with one statement takes on MariaDB. Default 6: the library sends BEGIN and COMMIT itself. */
  readonly messages?: number;
  /** The same on MySQL. Default 8. */
  readonly messagesOnMysql?: number;
  open(): Promise<Opened<Tx>>;
}

/** Undefined where the server is missing: the set-up has said so, and {@link describeOn} leaves its rows out. */
export const servers = { postgresql: postgresUrl ?? "", mysql: mysqlUrl ?? "" };

/** `describe` where the engine is there. */
export function describeOn(engine: Database<never>["dialect"]): typeof describe.skip {
  return engine === "postgresql" ? describeOnPostgres : describeOnMysql;
}

/** Makes a table of this test's own. */
export async function openTable<Tx>(
  database: Database<Tx>,
  table: string,
): Promise<Pick<Opened<Tx>, "countRows" | "database" | "table">> {
  const reference =
    database.dialect === "postgresql" ? ` REFERENCES ${table} (id) DEFERRABLE INITIALLY DEFERRED` : "";
  await database.alone(
    `CREATE TABLE ${table} (id VARCHAR(40) PRIMARY KEY, parent VARCHAR(40)${reference})`,
    [],
  );
  return {
    database,
    table,
    async countRows() {
      const [row] = await database.alone(`SELECT count(*) AS count FROM ${table}`, []);
      return Number(row?.["count"]);
    },
  };
}

export function unusedTable(): string {
  return `databases_${randomBytes(8).toString("hex")}`;
}

/** Drops a schema of PostgreSQL, or the tables of MySQL whose names begin so. */
export async function dropTables<Tx>(database: Database<Tx>, name: string): Promise<void> {
  if (database.dialect === "postgresql") {
    await database.alone(`DROP SCHEMA IF EXISTS ${name} CASCADE`, []);
    return;
  }
  const text =
    "SELECT table_name AS name FROM information_schema.tables WHERE table_schema = DATABASE() AND table_name LIKE ?";
  for (const row of await database.alone(text, [`${name}%`])) {
    // oxlint-disable-next-line no-await-in-loop -- one statement after the other
    await database.alone(`DROP TABLE ${String(row["name"])}`, []);
  }
}

export const poolSize = 4;

/** Ends a PostgreSQL session and waits until it is gone. PostgreSQL 13 cannot wait itself. */
export async function endSession(
  send: (text: string) => Promise<readonly unknown[]>,
  id: number,
): Promise<void> {
  await send(`SELECT pg_terminate_backend(${id})::text`);
  for (let left = 200; left > 0; left -= 1) {
    // oxlint-disable-next-line no-await-in-loop -- polling
    if ((await send(`SELECT pid::text FROM pg_stat_activity WHERE pid = ${id}`)).length === 0) return;
    // oxlint-disable-next-line no-await-in-loop -- polling
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  throw new Error("the session did not end");
}
