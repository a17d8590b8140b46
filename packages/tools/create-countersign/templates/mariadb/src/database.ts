// npm test and npm run dev need a MariaDB, 10.6 or newer: its DATABASE_URL in the environment or in .env. Tests make a database of
// their own beside it, and remove it. Any number of processes may run. Where their user may not CREATE, migrate and the CREATE
// TABLEs go into your migrations.

import { fromMysql2 } from "@countersign/store-sql/mysql2";
import type { BusinessQuery, Payout } from "countersign/payout";
import { createStores, migrate } from "@countersign/store-sql";
import type { WebhookEvent } from "countersign/webhooks";
import { createPool, type PoolConnection, type RowDataPacket } from "mysql2/promise";
import { amountOf } from "./amount.ts";
import { settings } from "./settings.ts";

const pool = createPool({ uri: settings.databaseUrl, connectionLimit: 20, connectTimeout: 2_000 });
const database = fromMysql2(pool);

/** Where countersign keeps idempotency keys and nonces, and the transaction that payments share with them. */
export const stores = createStores({ database });

// Of names and ids, no two are alike: neither by case, nor by accents, nor by blanks at the end.
const id = "VARCHAR(256) CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin NOT NULL";

// Your tables in place of these three.
const tables = [
  `businesses (id ${id}, iban ${id}, PRIMARY KEY (id, iban))`,
  `payouts (idempotency_key ${id} PRIMARY KEY, iban ${id}, amount DECIMAL(17, 2) NOT NULL, instruction JSON NOT NULL)`,
  `events (event_id ${id} PRIMARY KEY, type ${id}, data JSON NOT NULL)`,
];

/** Makes what is missing; where another user owns the tables, let your migrations do it. */
export async function openDatabase(): Promise<void> {
  await migrate(database);
  await Promise.all(tables.map((table) => pool.query(`CREATE TABLE IF NOT EXISTS ${table} ENGINE = InnoDB`)));
  await stores.ready();
}

export async function closeDatabase(): Promise<void> {
  stores.close();
  await pool.end();
}

export async function isKnownBusiness({ businessId, iban }: BusinessQuery): Promise<boolean> {
  const sql = "SELECT 1 FROM businesses WHERE id = ? AND iban = ?";
  const [rows] = await pool.query<RowDataPacket[]>(sql, [businessId, iban]);
  return rows.length === 1;
}

/** Records the payment for the worker that sends it to your bank. Its key commits with it: both, or neither. */
export async function recordPayout(payout: Payout, { tx }: { tx: PoolConnection }): Promise<void> {
  const row = [payout.idempotencyKey, payout.beneficiary.iban, amountOf(payout), payout.bodyText()];
  await tx.query("INSERT INTO payouts VALUES (?, ?, ?, ?)", row);
}

/** Records an event, and commits that it is done: both, or neither. */
export async function recordEvent(event: WebhookEvent, { tx }: { tx: PoolConnection }): Promise<void> {
  const row = [event.event_id, event.type, JSON.stringify(event.data)];
  await tx.query("INSERT INTO events VALUES (?, ?, ?)", row);
}

export async function addBusiness(business: string, iban: string): Promise<void> {
  const sql = "INSERT INTO businesses VALUES (?, ?) ON DUPLICATE KEY UPDATE iban = iban";
  await pool.query(sql, [business, iban]);
}

/** The idempotency keys of all payouts, and the ids of all events. */
export async function recorded(): Promise<{ payouts: unknown[]; events: unknown[] }> {
  const [payouts] = await pool.query<RowDataPacket[]>("SELECT idempotency_key FROM payouts");
  const [events] = await pool.query<RowDataPacket[]>("SELECT event_id FROM events");
  return {
    payouts: payouts.map(({ idempotency_key }) => idempotency_key),
    events: events.map(({ event_id }) => event_id),
  };
}
