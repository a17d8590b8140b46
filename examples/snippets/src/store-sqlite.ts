import { payoutEndpoint } from "countersign/payout";
import {
  type SqliteStores,
  createSqliteStores,
} from "@countersign/store-sqlite";
import Database from "libsql";

// TEST KEY of RFC 9421 appendix B.1.4; put the service's public key here.
const keys = {
  "test-key-ed25519": "JrQLj5P/89iXES9+vFgrIy29clF9CC/oPPsw3c5D0bs=",
};

const database = new Database(process.env["DATABASE_FILE"] ?? ":memory:");
database.exec(
  "CREATE TABLE IF NOT EXISTS payouts (key TEXT NOT NULL UNIQUE) STRICT",
);
export const stores: SqliteStores<Database.Database> = createSqliteStores({
  database,
});

/** An Express middleware. The row, the key and the nonce commit together. */
export const receivePayout = payoutEndpoint({
  addresses: { allow: ["192.0.2.10", "198.51.100.0/28"] },
  signature: { keys },
  stores,
  pay({ idempotencyKey }, { tx }) {
    tx.prepare("INSERT INTO payouts VALUES (?)").run(idempotencyKey);
  },
});
