import { createStores } from "@countersign/store-sql";
import Database from "libsql";

const database = new Database("platform.db", { timeout: 5000 });
const retentionMs = 365 * 86_400_000;

export function createStore() {
  return createStores({ database, retentionMs, pruneIntervalMs: 0 })
    .idempotency;
}

export function close() {
  database.close();
}
