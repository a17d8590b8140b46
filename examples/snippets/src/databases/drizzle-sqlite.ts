import { payoutEndpoint } from "countersign/payout";
import { type SqliteDatabase, createStores } from "@countersign/store-sql";
import { and, eq } from "drizzle-orm";
import type { BetterSQLite3Database } from "drizzle-orm/better-sqlite3";
import { sqliteTable, text } from "drizzle-orm/sqlite-core";
import { service } from "./service.js";

const payments = sqliteTable("payments", {
  key: text().primaryKey(),
  iban: text().notNull(),
});
const businesses = sqliteTable("businesses", { id: text(), iban: text() });
const { id, iban } = businesses;

type Db = BetterSQLite3Database & { $client: SqliteDatabase };

export function payouts(db: Db) {
  const stores = createStores({ database: db.$client });
  return payoutEndpoint({
    ...service,
    stores,
    findBusiness(asked) {
      const isAsked = and(eq(id, asked.businessId), eq(iban, asked.iban));
      return db.select().from(businesses).where(isAsked).get() !== undefined;
    },
    pay({ idempotencyKey: key, beneficiary }) {
      db.insert(payments).values({ key, iban: beneficiary.iban }).run();
    },
  });
}

// Mount it: app.post("/api/v1/transaction", payouts(db));
