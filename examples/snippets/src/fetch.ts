import { payoutRoute } from "@countersign/fetch";
import { createStores } from "@countersign/store-sql";
import Database from "libsql";

const database = new Database(process.env["DATABASE_FILE"] ?? ":memory:");
database.exec(`
  CREATE TABLE IF NOT EXISTS payouts (
    key TEXT PRIMARY KEY, iban TEXT) STRICT`);
const insertPayout = database.prepare("INSERT INTO payouts VALUES (?, ?)");

// TEST KEY of RFC 9421 appendix B.1.4; put the service's public key here.
const keys = {
  "test-key-ed25519": "JrQLj5P/89iXES9+vFgrIy29clF9CC/oPPsw3c5D0bs=",
};

export const receivePayout = payoutRoute({
  addresses: { allow: ["192.0.2.10", "198.51.100.0/28"] },
  signature: { keys },
  stores: createStores({ database }),
  // In one transaction with the payout's key: it stays when this returns.
  pay: ({ idempotencyKey, beneficiary }) =>
    insertPayout.run(idempotencyKey, beneficiary.iban),
});
