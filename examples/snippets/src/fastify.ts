import { gracefulClose, payoutPlugin } from "@countersign/fastify";
import { createStores } from "@countersign/store-sql";
import { fastify } from "fastify";
import Database from "libsql";

const database = new Database(process.env["DATABASE_FILE"] ?? ":memory:");
database.exec(`
  CREATE TABLE IF NOT EXISTS payouts (
    key TEXT PRIMARY KEY, iban TEXT) STRICT`);
const insertPayout = database.prepare("INSERT INTO payouts VALUES (?, ?)");

// TEST KEY of RFC 9421 appendix B.1.4; put the service's public key here.
const testKey = "JrQLj5P/89iXES9+vFgrIy29clF9CC/oPPsw3c5D0bs=";

const payouts = payoutPlugin({
  url: "/api/v1/transaction",
  addresses: { allow: ["192.0.2.10", "198.51.100.0/28"] },
  signature: { keys: { "test-key-ed25519": testKey } },
  stores: createStores({ database }),
  // In one transaction with the payout's key: it stays when this returns.
  pay: ({ idempotencyKey, beneficiary }) =>
    insertPayout.run(idempotencyKey, beneficiary.iban),
});

export const app = fastify();
void app.register(payouts);
export const close = gracefulClose(app.server, { endpoints: [payouts] });
