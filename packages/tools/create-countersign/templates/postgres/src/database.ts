// npm test and npm run dev need a PostgreSQL: its DATABASE_URL in the environment or in .env. Tests make a schema of their own in
// it, and remove it. Any number of processes may run. Where their role owns no tables, migrate and the CREATE TABLEs go
// into your migrations.

import { fromPg } from "@countersign/store-sql/pg";
import type { BusinessQuery, Payout } from "countersign/payout";
import { createStores, migrate } from "@countersign/store-sql";
import type { WebhookEvent } from "countersign/webhooks";
import { Pool, type PoolClient } from "pg";
import { amountOf } from "./amount.ts";
import { settings } from "./settings.ts";

const schema = settings.databaseSchema;
const pool = new Pool({ connectionString: settings.databaseUrl, max: 20, connectionTimeoutMillis: 2_000 });
pool.on("error", (error) => console.error("PostgreSQL: a resting connection has ended:", error.message));

/** Where countersign keeps idempotency keys and nonces, and the transaction that payments share with them. */
export const stores = createStores({ database: fromPg(pool), schema: settings.storesSchema });

/** Makes what is missing; where another role owns the tables, let your migrations do it. */
export async function openDatabase(): Promise<void> {
  await migrate(pool, { schema: settings.storesSchema });
  // Your tables in place of these three.
  await pool.query(`
    CREATE TABLE IF NOT EXISTS ${schema}.businesses (id text, iban text, PRIMARY KEY (id, iban));
    CREATE TABLE IF NOT EXISTS ${schema}.payouts (
      idempotency_key text PRIMARY KEY, iban text NOT NULL, amount numeric(17, 2) NOT NULL, instruction text NOT NULL
    );
    CREATE TABLE IF NOT EXISTS ${schema}.events (event_id text PRIMARY KEY, type text NOT NULL, data text NOT NULL);
  `);
  await stores.ready();
}

export async function closeDatabase(): Promise<void> {
  stores.close();
  await pool.end();
}

export async function isKnownBusiness({ businessId, iban }: BusinessQuery): Promise<boolean> {
  const sql = `SELECT FROM ${schema}.businesses WHERE id = $1 AND iban = $2`;
  const { rowCount } = await pool.query(sql, [businessId, iban]);
  return rowCount === 1;
}

/** Records the payment for the worker that sends it to your bank. Its key commits with it: both, or neither. */
export async function recordPayout(payout: Payout, { tx }: { tx: PoolClient }): Promise<void> {
  const row = [payout.idempotencyKey, payout.beneficiary.iban, amountOf(payout), payout.bodyText()];
  await tx.query(`INSERT INTO ${schema}.payouts VALUES ($1, $2, $3, $4)`, row);
}

/** Records an event, and commits that it is done: both, or neither. */
export async function recordEvent(event: WebhookEvent, { tx }: { tx: PoolClient }): Promise<void> {
  const row = [event.event_id, event.type, JSON.stringify(event.data)];
  await tx.query(`INSERT INTO ${schema}.events VALUES ($1, $2, $3)`, row);
}

export async function addBusiness(id: string, iban: string): Promise<void> {
  await pool.query(`INSERT INTO ${schema}.businesses VALUES ($1, $2) ON CONFLICT DO NOTHING`, [id, iban]);
}

/** The idempotency keys of all payouts, and the ids of all events. */
export async function recorded(): Promise<{ payouts: unknown[]; events: unknown[] }> {
  const payouts = await pool.query(`SELECT idempotency_key FROM ${schema}.payouts`);
  const events = await pool.query(`SELECT event_id FROM ${schema}.events`);
  return {
    payouts: payouts.rows.map(({ idempotency_key }) => idempotency_key),
    events: events.rows.map(({ event_id }) => event_id),
  };
}
