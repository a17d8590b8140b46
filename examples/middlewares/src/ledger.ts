// What the app itself writes, each in the transaction of its key.
import { refuse } from "@countersign/idempotency-guard";
import type { SqliteDatabase } from "@countersign/store-sql";
import type { WebhookEvent } from "countersign/webhooks";

/** A payout instruction whose signature and form have been checked. */
interface Payout {
  readonly key: string;
  /** Names the key of the service that has signed it. */
  readonly keyid: string;
  readonly business: string;
  readonly iban: string;
  /** The number exactly as it was signed: "10.10", not 10.1. */
  readonly amount: string;
}

export interface Ledger {
  pay(payout: Payout): void;
  record(event: WebhookEvent): void;
}

export function openLedger(database: SqliteDatabase): Ledger {
  database.exec(`
    CREATE TABLE IF NOT EXISTS businesses (
      id TEXT, iban TEXT, PRIMARY KEY (id, iban)) STRICT;
    CREATE TABLE IF NOT EXISTS payouts (
      idempotency_key TEXT PRIMARY KEY, keyid TEXT NOT NULL,
      business TEXT NOT NULL, iban TEXT NOT NULL, amount TEXT NOT NULL) STRICT;
    CREATE TABLE IF NOT EXISTS events (
      event_id TEXT PRIMARY KEY, type TEXT NOT NULL, data TEXT NOT NULL) STRICT`);
  const find = database.prepare(
    "SELECT 1 FROM businesses WHERE id = ? AND iban = ?",
  );
  const pay = database.prepare("INSERT INTO payouts VALUES (?, ?, ?, ?, ?)");
  const record = database.prepare("INSERT INTO events VALUES (?, ?, ?)");
  return {
    pay({ key, keyid, business, iban, amount }) {
      const isKnown = find.get(business, iban) !== undefined;
      if (!isKnown) throw refuse("business-unknown");
      pay.run(key, keyid, business, iban, amount);
    },
    record({ event_id, type, data }) {
      record.run(event_id, type, JSON.stringify(data));
    },
  };
}
