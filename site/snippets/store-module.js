import { createSqliteStores } from "@countersign/store-sql/sqlite";
import Database from "libsql";

const database = new Database("platform.db", { timeout: 5000 });
const retentionMs = 365 * 86_400_000;

export function createStore() {
  return createSqliteStores({ database, retentionMs, pruneIntervalMs: 0 })
    .idempotency;
}

export function close() {
  database.close();
}
