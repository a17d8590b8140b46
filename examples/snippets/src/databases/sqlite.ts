import { gracefulClose, payoutEndpoint } from "countersign/payout";
import { createStores } from "@countersign/store-sql";
import type { Express } from "express";
import type Database from "libsql";
import { service } from "./service.js";

// Your tables: payments (key TEXT PRIMARY KEY, iban TEXT NOT NULL), and
// whom you pay: businesses (id TEXT, iban TEXT, PRIMARY KEY (id, iban)).

// At the start: process.once("SIGTERM", await start(express(), database));
export async function start(app: Express, database: Database.Database) {
  const stores = createStores({ database });
  const select = "SELECT 1 FROM businesses WHERE id = ? AND iban = ?";
  const insert = "INSERT INTO payments (key, iban) VALUES (?, ?)";
  const receivePayout = payoutEndpoint({
    ...service,
    stores,
    findBusiness: ({ businessId, iban }) =>
      database.prepare(select).get(businessId, iban) !== undefined,
    pay({ idempotencyKey: key, beneficiary: { iban } }, { tx }) {
      tx.prepare(insert).run(key, iban);
    },
  });
  app.post("/api/v1/transaction", receivePayout);
  const server = app.listen(process.env["PORT"] ?? 3000);
  const close = gracefulClose(server, { endpoints: [receivePayout] });
  return async () => {
    await close(); // What was received is answered.
    stores.close();
    database.close();
  };
}
