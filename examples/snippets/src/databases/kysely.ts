import { fromKysely } from "@countersign/store-sql/kysely";
import { gracefulClose, payoutEndpoint } from "countersign/payout";
import { createStores } from "@countersign/store-sql";
import type { Express } from "express";
import { Kysely, PostgresDialect } from "kysely";
import { Pool } from "pg";
import { service } from "./service.js";

interface Tables {
  payments: { key: string; iban: string };
  businesses: { id: string; iban: string };
}

const report = (error: Error) => console.error("PostgreSQL:", error.message);

/** Without both listeners the loss of a connection ends the process. */
export function openDatabase(connectionString: string): Kysely<Tables> {
  const pool = new Pool({ connectionString });
  pool.on("error", report); // Of an idle connection.
  // Of one in use, while `pay` waits for something else.
  pool.on("connect", (client) => client.on("error", report));
  return new Kysely({ dialect: new PostgresDialect({ pool }) });
}

// At the start: process.once("SIGTERM", await start(express(), db));
export async function start(app: Express, db: Kysely<Tables>) {
  const stores = createStores({ database: fromKysely(db) });
  await stores.ready(); // Rejects until `countersign migrate` has run.
  const receivePayout = payoutEndpoint({
    ...service,
    stores,
    async findBusiness({ businessId, iban }) {
      const isAsked = db
        .selectFrom("businesses")
        .select("id")
        .where("id", "=", businessId)
        .where("iban", "=", iban);
      return (await isAsked.executeTakeFirst()) !== undefined;
    },
    async pay({ idempotencyKey: key, beneficiary: { iban } }, { tx }) {
      await tx.insertInto("payments").values({ key, iban }).execute();
    },
  });
  app.post("/api/v1/transaction", receivePayout);
  const server = app.listen(process.env["PORT"] ?? 3000);
  const close = gracefulClose(server, { endpoints: [receivePayout] });
  return async () => {
    await close(); // What was received is answered.
    stores.close();
    await db.destroy();
  };
}
