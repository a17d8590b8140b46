import { fromKnex } from "@countersign/store-sql/knex";
import { gracefulClose, payoutEndpoint } from "countersign/payout";
import { createStores } from "@countersign/store-sql";
import type { Express } from "express";
import type { Knex } from "knex";
import { service } from "./service.js";

// Your tables: payments (key text PRIMARY KEY, iban text NOT NULL), and
// whom you pay: businesses (id text, iban text, PRIMARY KEY (id, iban)).

// At the start: process.once("SIGTERM", await start(express(), knex));
export async function start(app: Express, knex: Knex) {
  const stores = createStores({ database: fromKnex(knex) });
  await stores.ready(); // Rejects until `countersign migrate` has run.
  const receivePayout = payoutEndpoint({
    ...service,
    stores,
    findBusiness: async ({ businessId: id, iban }) =>
      (await knex("businesses").where({ id, iban }).first()) !== undefined,
    async pay({ idempotencyKey: key, beneficiary: { iban } }, { tx }) {
      await tx("payments").insert({ key, iban });
    },
  });
  app.post("/api/v1/transaction", receivePayout);
  const server = app.listen(process.env["PORT"] ?? 3000);
  const close = gracefulClose(server, { endpoints: [receivePayout] });
  return async () => {
    await close(); // What was received is answered.
    stores.close();
    await knex.destroy();
  };
}
