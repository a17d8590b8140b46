import { mkdirSync } from "node:fs";
import path from "node:path";
import { createSqliteStores, type SqliteStores } from "@countersign/store-sqlite";
import Database from "libsql";
import { reasonOf, SettingError } from "./setting-error.ts";
import type { StoreLocation } from "./setting-values.ts";

/** A connection of the libsql driver. */
export type PlatformDatabase = Database.Database;

// A payout and the work that it causes are one transaction: see payout-ledger.ts.
const payoutTables = `
  CREATE TABLE IF NOT EXISTS payouts (
    idempotency_key  TEXT NOT NULL UNIQUE,
    business_id      TEXT NOT NULL,
    iban             TEXT NOT NULL,
    bic              TEXT NOT NULL,
    beneficiary_name TEXT NOT NULL,
    reference        TEXT,
    instruction      TEXT NOT NULL,
    status           TEXT NOT NULL CHECK (status IN ('accepted', 'executed', 'failed')),
    status_reason    TEXT,
    created_at       INTEGER NOT NULL,
    settled_at       INTEGER
  ) STRICT;
  CREATE TABLE IF NOT EXISTS outbox (
    id              INTEGER PRIMARY KEY,
    task            TEXT NOT NULL CHECK (task IN ('transfer', 'confirmation')),
    idempotency_key TEXT NOT NULL REFERENCES payouts (idempotency_key),
    state           TEXT NOT NULL CHECK (state IN ('due', 'done', 'dead')),
    attempts        INTEGER NOT NULL,
    due_at          INTEGER NOT NULL,
    last_error      TEXT,
    UNIQUE (idempotency_key, task)
  ) STRICT;
  CREATE INDEX IF NOT EXISTS outbox_due ON outbox (task, due_at) WHERE state = 'due';
`;

// An event and what it changes are one transaction: see party-ledger.ts. The service may send statuses that nobody knows yet.
const partyTables = `
  CREATE TABLE IF NOT EXISTS webhook_events (
    event_id TEXT NOT NULL UNIQUE,
    type     TEXT NOT NULL,
    applied  INTEGER NOT NULL
  ) STRICT;
  CREATE TABLE IF NOT EXISTS buyers (
    id         TEXT NOT NULL PRIMARY KEY,
    status     TEXT NOT NULL,
    changed_at TEXT NOT NULL
  ) STRICT;
  CREATE TABLE IF NOT EXISTS sellers (
    id         TEXT NOT NULL PRIMARY KEY,
    status     TEXT NOT NULL,
    changed_at TEXT NOT NULL
  ) STRICT;
  CREATE TABLE IF NOT EXISTS payment_requests (
    id        TEXT NOT NULL PRIMARY KEY,
    status    TEXT NOT NULL CHECK (status IN ('PENDING_REPAYMENT', 'CLOSED')),
    reminders INTEGER NOT NULL
  ) STRICT;
`;

/** One connection, and the stores of the guards on it: a payout and the end of its key can be one transaction. */
export interface OpenedStore {
  readonly database: PlatformDatabase;
  readonly stores: SqliteStores;
}

/** Opens the database and creates folder, file and tables as needed. Throws a SettingError naming STORE_URL. */
export function openStore(store: StoreLocation): OpenedStore {
  if (store.kind === "memory" && process.env["NODE_ENV"] === "production") {
    throw new SettingError(
      "STORE_URL",
      "sqlite:<path> in production (memory forgets every paid key)",
      "memory:",
    );
  }
  try {
    return open(store.kind === "memory" ? ":memory:" : preparedFile(store.file));
  } catch (error) {
    throw new SettingError("STORE_URL", `a database that can be opened and written (${reasonOf(error)})`);
  }
}

function preparedFile(file: string): string {
  const absolute = path.resolve(file);
  mkdirSync(path.dirname(absolute), { recursive: true });
  return absolute;
}

function open(file: string): OpenedStore {
  const database = new Database(file);
  try {
    refuseOthers(database);
    // Sets and reads back what makes a commit durable.
    const stores = createSqliteStores({ database });
    database.exec("PRAGMA foreign_keys = ON");
    database.exec(payoutTables);
    database.exec(partyTables);
    return { database, stores };
  } catch (error) {
    database.close();
    throw error;
  }
}

// The file of a sandbox, say, has tables of the same names. What marks a file: https://www.sqlite.org/fileformat.html, offset 68.
function refuseOthers(database: PlatformDatabase): void {
  const [applicationId] = database.prepare("PRAGMA application_id").pluck().all();
  if (applicationId !== 0) throw new Error("it belongs to another program");
}
