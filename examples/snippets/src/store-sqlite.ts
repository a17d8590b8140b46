import type { RequestIdempotency } from "@countersign/idempotency-guard";
import { createSqliteStores, withImmediateTransaction } from "@countersign/store-sqlite";
import Database from "libsql";

const database = new Database(process.env["DATABASE_FILE"] ?? ":memory:");
database.exec("CREATE TABLE IF NOT EXISTS payouts (idempotency_key TEXT NOT NULL UNIQUE) STRICT");
const insertPayout = database.prepare("INSERT INTO payouts (idempotency_key) VALUES (?)");
export const stores = createSqliteStores({ database });

/** A handler's payment: the row and the end of its key commit together. */
export const pay = (attempt: RequestIdempotency): unknown =>
  withImmediateTransaction(database, (tx) => {
    const completed = attempt.completeIn(tx); // first: throws when the key is another attempt's, or paid
    insertPayout.run(attempt.key);
    return completed;
  });
