import { fromPg } from "@countersign/store-sql/pg";
import { gracefulClose, payoutEndpoint } from "countersign/payout";
import { createStores } from "@countersign/store-sql";
import type { Express } from "express";
import { Pool } from "pg";
import { service } from "./service.js";

// Your tables: payments (key text PRIMARY KEY, iban text NOT NULL), and
// whom you pay: businesses (id text, iban text, PRIMARY KEY (id, iban)).

/** Without the listener the loss of an idle connection ends the process. */
export function openPool(connectionString: string): Pool {
  const pool = new Pool({ connectionString });
  pool.on("error", (error) => console.error("PostgreSQL:", error.message));
  return pool;
}

// At the start: process.once("SIGTERM", await start(express(), pool));
export async function start(app: Express, pool: Pool) {
  const stores = createStores({ database: fromPg(pool) });
  await stores.ready(); // Rejects until `countersign migrate` has run.
  const select = "SELECT FROM businesses WHERE id = $1 AND iban = $2";
  const insert = "INSERT INTO payments (key, iban) VALUES ($1, $2)";
  const receivePayout = payoutEndpoint({
    ...service,
    stores,
    findBusiness: async ({ businessId, iban }) =>
      (await pool.query(select, [businessId, iban])).rowCount === 1,
    async pay({ idempotencyKey: key, beneficiary: { iban } }, { tx }) {
      await tx.query(insert, [key, iban]);
    },
  });
  app.post("/api/v1/transaction", receivePayout);
  const server = app.listen(process.env["PORT"] ?? 3000);
  const close = gracefulClose(server, { endpoints: [receivePayout] });
  return async () => {
    await close(); // What was received is answered.
    stores.close();
    await pool.end();
  };
}
