import { payoutEndpoint } from "@countersign/payout";
import {
  createSqliteStores,
  type SqliteDatabase,
} from "@countersign/store-sqlite";
import type { BetterSQLite3Database } from "drizzle-orm/better-sqlite3";
import { sqliteTable, text } from "drizzle-orm/sqlite-core";
import { service } from "./service.ts";

const payments = sqliteTable("payments", {
  key: text().primaryKey(),
  iban: text().notNull(),
});

type Db = BetterSQLite3Database & { $client: SqliteDatabase };

export function payouts(db: Db) {
  const stores = createSqliteStores({ database: db.$client });
  return payoutEndpoint({
    ...service,
    stores,
    pay({ idempotencyKey: key, beneficiary: { iban } }) {
      db.insert(payments).values({ key, iban }).run();
    },
  });
}

// Mount it: app.post("/api/v1/transaction", payouts(db));
