import type { PostgresQueryable } from "@countersign/store-postgres";
import { outboxStatements } from "../outbox-statements.ts";
import { partyStatements } from "../party-statements.ts";
import { payoutStatements } from "../payout-statements.ts";
import { postgresDialect } from "./dialect.ts";
import { numbered, query } from "./queries.ts";

const names = ["payouts", "outbox", "webhook_events", "buyers", "sellers", "payment_requests"];

/**
 * The tables of the platform in one schema. Texts are compared byte by byte: the times of events order as texts. `rowid` is what
 * SQLite has by itself.
 */
function definitions(schema: string): string {
  return `
    CREATE TABLE IF NOT EXISTS ${schema}payouts (
      rowid            bigint GENERATED ALWAYS AS IDENTITY,
      idempotency_key  text COLLATE "C" NOT NULL UNIQUE,
      business_id      text NOT NULL,
      iban             text NOT NULL,
      bic              text NOT NULL,
      beneficiary_name text NOT NULL,
      reference        text,
      instruction      text NOT NULL,
      status           text NOT NULL CHECK (status IN ('accepted', 'executed', 'failed')),
      status_reason    text,
      created_at       bigint NOT NULL,
      settled_at       bigint
    );
    CREATE TABLE IF NOT EXISTS ${schema}outbox (
      id              bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
      task            text COLLATE "C" NOT NULL CHECK (task IN ('transfer', 'confirmation')),
      idempotency_key text COLLATE "C" NOT NULL REFERENCES ${schema}payouts (idempotency_key),
      state           text COLLATE "C" NOT NULL CHECK (state IN ('due', 'done', 'dead')),
      attempts        integer NOT NULL,
      due_at          bigint NOT NULL,
      last_error      text,
      UNIQUE (idempotency_key, task)
    );
    CREATE INDEX IF NOT EXISTS outbox_due ON ${schema}outbox (task, due_at, id) WHERE state = 'due';
    CREATE TABLE IF NOT EXISTS ${schema}webhook_events (
      rowid    bigint GENERATED ALWAYS AS IDENTITY,
      event_id text COLLATE "C" NOT NULL UNIQUE,
      type     text NOT NULL,
      applied  integer NOT NULL
    );
    CREATE TABLE IF NOT EXISTS ${schema}buyers (
      id         text COLLATE "C" NOT NULL PRIMARY KEY,
      status     text NOT NULL,
      changed_at text COLLATE "C" NOT NULL
    );
    CREATE TABLE IF NOT EXISTS ${schema}sellers (
      id         text COLLATE "C" NOT NULL PRIMARY KEY,
      status     text NOT NULL,
      changed_at text COLLATE "C" NOT NULL
    );
    CREATE TABLE IF NOT EXISTS ${schema}payment_requests (
      id        text COLLATE "C" NOT NULL PRIMARY KEY,
      status    text NOT NULL CHECK (status IN ('PENDING_REPAYMENT', 'CLOSED')),
      reminders integer NOT NULL
    );`;
}

/**
 * Creates the tables that are missing; inside a transaction. A role that may not create any can use tables that are there.
 * Throws when tables of these names are those of another program.
 */
export async function ensureTables(connection: PostgresQueryable, schema: string): Promise<void> {
  const dialect = postgresDialect(schema);
  // Two processes that start at once would both find them missing.
  await query(connection, "SELECT pg_advisory_xact_lock(hashtextextended(?, 0))", [`countersign ${schema}`]);
  if (await areMissing(connection, dialect.schema)) {
    const [known] = await query(connection, "SELECT 1 FROM pg_namespace WHERE nspname = ?", [schema]);
    if (known === undefined) await connection.query(`CREATE SCHEMA ${dialect.schema.slice(0, -1)}`);
    await connection.query(definitions(dialect.schema));
  }
  await connection.query(preparations(schema));
}

async function areMissing(connection: PostgresQueryable, schema: string): Promise<boolean> {
  const places = names.map((name) => `to_regclass('${schema}${name}')`).join(", ");
  const missing = await query(
    connection,
    `SELECT 1 FROM (SELECT num_nulls(${places}) AS nulls) AS found WHERE nulls > 0`,
  );
  return missing.length > 0;
}

// The server looks up each table and column: what does not fit is found at the start and not by the first payout.
function preparations(schema: string): string {
  const dialect = postgresDialect(schema);
  const { changes, ...ofParties } = partyStatements(dialect);
  const groups = [payoutStatements(dialect), outboxStatements(dialect), ofParties, changes];
  return groups
    .flatMap((group) => Object.values<string>({ ...group }))
    .map((statement) => `PREPARE countersign_fits AS ${numbered(statement)}; DEALLOCATE countersign_fits;`)
    .join("\n");
}
