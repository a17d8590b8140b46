import { type PostgresLocation, SettingError } from "@countersign/example-settings";
import { describe } from "@jest/globals";
import { Pool } from "pg";
import { pino } from "pino";
import { describeOnPostgres, isolatedName, postgresUrl } from "@countersign/test-support/servers/engines.ts";
import type { AcceptedPayout } from "../src/ledgers/payouts.ts";
import { openPostgresStorage } from "../src/engines/postgres/storage.ts";
import { openSqliteStorage, type SqliteStorage } from "../src/engines/sqlite.ts";
import type { PlatformStorage } from "../src/engines/storage.ts";

/** A storage on a clock that stands still until a test moves it, with nothing in it. */
export interface TestStorage extends PlatformStorage {
  now: number;
  /** The rows of a statement in which `{}` stands before the names of tables. */
  rows(statement: string): Promise<readonly unknown[]>;
  /** Removes all rows of the ledgers and the keys. */
  empty(): Promise<void>;
}

export interface TestEngine {
  readonly name: string;
  readonly describe: typeof describe.skip;
  open(): Promise<TestStorage>;
}

export const testEngines: readonly TestEngine[] = [
  { name: "SQLite", describe, open: async () => memoryStorage() },
  { name: "PostgreSQL", describe: describeOnPostgres, open: postgresStorage },
];

const tables = [
  "outbox",
  "payouts",
  "webhook_events",
  "buyers",
  "sellers",
  "payment_requests",
  "countersign_idempotency",
];

export function memoryStorage(): TestStorage & SqliteStorage {
  const storage = openSqliteStorage({ kind: "memory" }, () => opened.now);
  const { database } = storage;
  const opened = {
    ...storage,
    now: 1_000,
    rows: async (statement: string) => database.prepare(statement.replaceAll("{}", "")).all(),
    async empty() {
      for (const table of tables) database.exec(`DELETE FROM ${table}`);
    },
  };
  return opened;
}

async function postgresStorage(): Promise<TestStorage> {
  const location = isolatedPostgres();
  const logger = pino({ level: "silent" });
  const storage = await openPostgresStorage(location, logger, () => opened.now);
  const { pool } = storage;
  const opened = {
    ...storage,
    now: 1_000,
    rows: async (statement: string) =>
      (await pool.query(statement.replaceAll("{}", `"${location.schema}".`))).rows,
    async empty() {
      await pool.query(`TRUNCATE ${tables.map((table) => `"${location.schema}".${table}`).join(", ")}`);
    },
    async close() {
      await storage.close();
      await dropSchema(location.schema);
    },
  };
  return opened;
}

/** A schema of its own in the database for tests. */
export function isolatedPostgres(): PostgresLocation {
  if (postgresUrl === undefined) throw new Error("there is no PostgreSQL for this test");
  return { kind: "postgres", url: postgresUrl, schema: isolatedName("platform"), variable: "STORE_URL" };
}

export async function dropSchema(schema: string): Promise<void> {
  const pool = new Pool({ connectionString: postgresUrl, max: 1 });
  await pool.query(`DROP SCHEMA IF EXISTS "${schema}" CASCADE`);
  await pool.end();
}

export function payout(idempotencyKey: string, name = "Example Trading GmbH"): AcceptedPayout {
  return {
    idempotencyKey,
    businessId: "b-1",
    beneficiary: { iban: "DE89370400440532013000", bic: "COBADEFFXXX", name },
    reference: "invoice 7",
    instruction: '{"amount":{"value":10.10}}',
  };
}

export async function errorOf(opening: Promise<unknown>): Promise<SettingError> {
  try {
    await opening;
  } catch (error) {
    if (error instanceof SettingError) return error;
    throw error;
  }
  throw new Error("the storage was opened");
}
