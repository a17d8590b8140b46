import { fromPostgresJs } from "@countersign/store-sql/postgres-js";
import { gracefulClose, payoutEndpoint } from "countersign/payout";
import { createStores } from "@countersign/store-sql";
import type { Express } from "express";
import type { Sql } from "postgres";
import { service } from "./service.js";

// Your tables: payments (key text PRIMARY KEY, iban text NOT NULL), and
// whom you pay: businesses (id text, iban text, PRIMARY KEY (id, iban)).

// At the start: process.once("SIGTERM", await start(express(), sql));
export async function start(app: Express, sql: Sql) {
  const stores = createStores({ database: fromPostgresJs(sql) });
  await stores.ready(); // Rejects until `countersign migrate` has run.
  const receivePayout = payoutEndpoint({
    ...service,
    stores,
    findBusiness: async ({ businessId: id, iban }) =>
      (await sql`SELECT FROM businesses WHERE id = ${id} AND iban = ${iban}`)
        .count === 1,
    async pay({ idempotencyKey: key, beneficiary: { iban } }, { tx }) {
      await tx`INSERT INTO payments (key, iban) VALUES (${key}, ${iban})`;
    },
  });
  app.post("/api/v1/transaction", receivePayout);
  const server = app.listen(process.env["PORT"] ?? 3000);
  const close = gracefulClose(server, { endpoints: [receivePayout] });
  return async () => {
    await close(); // What was received is answered.
    stores.close();
    await sql.end();
  };
}
