// npm test and npm run dev need a PostgreSQL: its DATABASE_URL in the environment or in .env. Tests make a schema of their own in
// it, and remove it. Any number of processes may run. Where their role owns no tables, migratePostgres and the CREATE TABLEs go
// into your migrations.

import type { Payout } from "@countersign/payout";
import { createPostgresStores, migratePostgres, withPostgresTransaction } from "@countersign/store-postgres";
import type { EventContext, WebhookEvent } from "@countersign/webhooks";
import { Pool } from "pg";
import { settings } from "./settings.ts";

// The keys have a pool of their own: behind the handlers' transactions a heartbeat would come too late.
const [keys, payments] = [connect(5), connect(20)];
const schema = settings.databaseSchema;
const onPostgres = createPostgresStores({ pool: keys, schema });

/** Where countersign keeps idempotency keys and nonces. */
export const stores = {
  idempotency: onPostgres.idempotency,
  nonces: onPostgres.nonces,
};

/** Makes what is missing; where another role owns the tables, let your migrations do it. */
export async function openDatabase(): Promise<void> {
  await migratePostgres(keys, { schema });
  // Your tables in place of these three.
  await payments.query(`
    CREATE TABLE IF NOT EXISTS ${schema}.businesses (id text, iban text, PRIMARY KEY (id, iban));
    CREATE TABLE IF NOT EXISTS ${schema}.payouts (
      idempotency_key text PRIMARY KEY, iban text NOT NULL, instruction text NOT NULL
    );
    CREATE TABLE IF NOT EXISTS ${schema}.events (event_id text PRIMARY KEY, type text NOT NULL, data text NOT NULL);
  `);
  await onPostgres.ready();
}

export async function closeDatabase(): Promise<void> {
  onPostgres.close();
  await Promise.all([keys.end(), payments.end()]);
}

export async function isKnownBusiness(id: string, iban: string): Promise<boolean> {
  const sql = `SELECT FROM ${schema}.businesses WHERE id = $1 AND iban = $2`;
  const { rowCount } = await payments.query(sql, [id, iban]);
  return rowCount === 1;
}

/** Records the payment for the worker that sends it to your bank, and its key as done: both, or neither. */
export async function recordPayout(payout: Payout, attempt?: Attempt): Promise<void> {
  if (attempt === undefined) throw new Error("the route has no payout checks in front of it");
  try {
    await withPostgresTransaction(payments, async (tx) => {
      await attempt.completeIn(tx); // first: locks the key, and throws when it is somebody else's, or paid
      const row = [payout.idempotencyKey, payout.beneficiary.iban, JSON.stringify(payout.body)];
      await tx.query(`INSERT INTO ${schema}.payouts VALUES ($1, $2, $3)`, row);
    });
  } catch (error) {
    // When the reply to COMMIT was lost, the key tells whether it went through.
    if (!(await attempt.committed())) throw error;
  }
}

type Attempt = Pick<EventContext, "completeIn"> & { committed(): Promise<boolean> };

/** Records an event, and that it is done: both, or neither. */
export async function recordEvent(event: WebhookEvent, context: EventContext): Promise<void> {
  await withPostgresTransaction(payments, async (tx) => {
    await context.completeIn(tx);
    const row = [event.event_id, event.type, JSON.stringify(event.data)];
    await tx.query(`INSERT INTO ${schema}.events VALUES ($1, $2, $3)`, row);
  });
}

export async function addBusiness(id: string, iban: string): Promise<void> {
  await payments.query(`INSERT INTO ${schema}.businesses VALUES ($1, $2) ON CONFLICT DO NOTHING`, [id, iban]);
}

/** The idempotency keys of all payouts, and the ids of all events. */
export async function recorded(): Promise<{ payouts: unknown[]; events: unknown[] }> {
  const payouts = await payments.query(`SELECT idempotency_key FROM ${schema}.payouts`);
  const events = await payments.query(`SELECT event_id FROM ${schema}.events`);
  return {
    payouts: payouts.rows.map(({ idempotency_key }) => idempotency_key),
    events: events.rows.map(({ event_id }) => event_id),
  };
}

function connect(max: number): Pool {
  const pool = new Pool({ connectionString: settings.databaseUrl, max, connectionTimeoutMillis: 2_000 });
  return pool.on("error", (error) =>
    console.error("PostgreSQL: a resting connection has ended:", error.message),
  );
}
