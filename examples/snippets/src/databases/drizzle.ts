import { fromDrizzle } from "@countersign/store-sql/drizzle";
import { gracefulClose, payoutEndpoint } from "countersign/payout";
import { createStores } from "@countersign/store-sql";
import { and, eq } from "drizzle-orm";
import { drizzle, type NodePgDatabase } from "drizzle-orm/node-postgres";
import { pgTable, text } from "drizzle-orm/pg-core";
import type { Express } from "express";
import { Pool } from "pg";
import { service } from "./service.js";

const payments = pgTable("payments", {
  key: text().primaryKey(),
  iban: text().notNull(),
});
const businesses = pgTable("businesses", { id: text(), iban: text() });
const { id, iban } = businesses;

type Db = NodePgDatabase & { $client: Pool };

/** Without the listener the loss of an idle connection ends the process. */
export function openDatabase(connectionString: string): Db {
  const pool = new Pool({ connectionString });
  pool.on("error", (error) => console.error("PostgreSQL:", error.message));
  return drizzle(pool);
}

// At the start: process.once("SIGTERM", await start(express(), db));
export async function start(app: Express, db: Db) {
  const stores = createStores({ database: fromDrizzle(db) });
  await stores.ready(); // Rejects until `countersign migrate` has run.
  const receivePayout = payoutEndpoint({
    ...service,
    stores,
    async findBusiness(asked) {
      const isAsked = and(eq(id, asked.businessId), eq(iban, asked.iban));
      return (await db.$count(businesses, isAsked)) === 1;
    },
    async pay({ idempotencyKey: key, beneficiary }, { tx }) {
      await tx.insert(payments).values({ key, iban: beneficiary.iban });
    },
  });
  app.post("/api/v1/transaction", receivePayout);
  const server = app.listen(process.env["PORT"] ?? 3000);
  const close = gracefulClose(server, { endpoints: [receivePayout] });
  return async () => {
    await close(); // What was received is answered.
    stores.close();
    await db.$client.end();
  };
}
