import { payoutEndpoint, refuse } from "countersign/payout";
import { createStores } from "@countersign/store-sql";
import express, { type Express } from "express";
import Database from "libsql";

const database = new Database(process.env["DATABASE_FILE"] ?? ":memory:");
database.exec(`
  CREATE TABLE IF NOT EXISTS payouts (
    key TEXT PRIMARY KEY, iban TEXT, amount TEXT NOT NULL) STRICT`);
const insertPayout = database.prepare("INSERT INTO payouts VALUES (?, ?, ?)");
// More than zero, with at most two decimals: "10.10", not "-5" or "1e3".
const anAmount = /^(?=.*[1-9])\d{1,15}(\.\d{1,2})?$/;

// TEST KEY of RFC 9421 appendix B.1.4; put the service's public key here.
const keys = {
  "test-key-ed25519": "JrQLj5P/89iXES9+vFgrIy29clF9CC/oPPsw3c5D0bs=",
};
const receivePayout = payoutEndpoint({
  addresses: { allow: ["192.0.2.10", "198.51.100.0/28"] },
  signature: { keys },
  stores: createStores({ database }),
  findBusiness: ({ iban, businessId }) =>
    iban === "DE89370400440532013000" && businessId === "biz_1",
  // In one transaction with the payout's key: it stays when this returns.
  pay({ idempotencyKey, beneficiary, amountText }) {
    const amount = amountText("/value") ?? "";
    if (!anAmount.test(amount)) throw refuse("amount-invalid");
    insertPayout.run(idempotencyKey, beneficiary.iban, amount);
  },
});

export const app: Express = express();
app.post("/api/v1/transaction", receivePayout);
