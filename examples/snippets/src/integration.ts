import { readFileSync } from "node:fs";
import { createStores, payoutEndpoint } from "countersign";
import express from "express";
import Database from "libsql";

const database = new Database("platform.db");
database.exec("CREATE TABLE IF NOT EXISTS payouts (key PRIMARY KEY, iban)");
const insert = database.prepare("INSERT INTO payouts VALUES (?, ?)");

// #region hero
const receivePayout = payoutEndpoint({
  addresses: { allow: ["127.0.0.1"] }, // From where the service calls.
  signature: { keys: JSON.parse(readFileSync("keys/keys.json", "utf8")) },
  stores: createStores({ database }),
  // Commits together with the payout's key, or not at all.
  pay: ({ idempotencyKey, beneficiary }) =>
    insert.run(idempotencyKey, beneficiary.iban),
});
const app = express().post("/api/v1/transaction", receivePayout);
app.listen(3000, "127.0.0.1");
// #endregion hero
