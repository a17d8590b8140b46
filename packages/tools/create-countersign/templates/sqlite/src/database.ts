// Everything is in one SQLite file on a local disk, for one machine. Back it up by VACUUM INTO, or together with its -wal.

import type { BusinessQuery, Payout } from "countersign/payout";
import { createStores } from "@countersign/store-sql";
import type { WebhookEvent } from "countersign/webhooks";
import Database from "libsql";
import { amountOf } from "./amount.ts";
import { settings } from "./settings.ts";

const database = new Database(settings.databaseFile);

/** Where countersign keeps idempotency keys and nonces, and the transaction that payments share with them. */
export const stores = createStores({ database });

// Your tables in place of these three.
database.exec(`
  CREATE TABLE IF NOT EXISTS businesses (id TEXT, iban TEXT, PRIMARY KEY (id, iban)) STRICT;
  CREATE TABLE IF NOT EXISTS payouts (
    idempotency_key TEXT PRIMARY KEY, iban TEXT NOT NULL, amount TEXT NOT NULL, instruction TEXT NOT NULL
  ) STRICT;
  CREATE TABLE IF NOT EXISTS events (event_id TEXT PRIMARY KEY, type TEXT NOT NULL, data TEXT NOT NULL) STRICT;
`);
const selectBusiness = database.prepare("SELECT 1 FROM businesses WHERE id = ? AND iban = ?");
const insertBusiness = database.prepare("INSERT OR IGNORE INTO businesses VALUES (?, ?)");
const insertPayout = database.prepare("INSERT INTO payouts VALUES (?, ?, ?, ?)");
const insertEvent = database.prepare("INSERT INTO events VALUES (?, ?, ?)");
const selectPayouts = database.prepare("SELECT idempotency_key FROM payouts").pluck();
const selectEvents = database.prepare("SELECT event_id FROM events").pluck();

export async function openDatabase(): Promise<void> {
  // The file is open, and its tables are there.
}

export async function closeDatabase(): Promise<void> {
  stores.close();
  database.close();
}

export async function isKnownBusiness({ businessId, iban }: BusinessQuery): Promise<boolean> {
  return selectBusiness.get(businessId, iban) !== undefined;
}

/** Records the payment for the worker that sends it to your bank. Its key commits with it: both, or neither. */
export function recordPayout(payout: Payout): void {
  insertPayout.run(payout.idempotencyKey, payout.beneficiary.iban, amountOf(payout), payout.bodyText());
}

/** Records an event, and commits that it is done: both, or neither. */
export function recordEvent({ event_id, type, data }: WebhookEvent): void {
  insertEvent.run(event_id, type, JSON.stringify(data));
}

export async function addBusiness(id: string, iban: string): Promise<void> {
  insertBusiness.run(id, iban);
}

/** The idempotency keys of all payouts, and the ids of all events. */
export async function recorded(): Promise<{ payouts: unknown[]; events: unknown[] }> {
  return { payouts: selectPayouts.all(), events: selectEvents.all() };
}
