import { readFileSync } from "node:fs";
import { createStores, payoutEndpoint } from "countersign";
import express from "express";
import Database from "libsql";

const database = new Database("platform.db");
database.exec(
  `CREATE TABLE IF NOT EXISTS payouts
    (idempotency_key TEXT PRIMARY KEY, iban TEXT) STRICT`,
);
const insertPayout = database.prepare("INSERT INTO payouts VALUES (?, ?)");
const stores = createStores({ database });

const receivePayout = payoutEndpoint({
  addresses: { allow: ["127.0.0.1"] }, // From where the service calls.
  signature: { keys: JSON.parse(readFileSync("keys/keys.json", "utf8")) },
  stores,
  // In one transaction with the payout's key: it stays when this returns.
  pay: ({ idempotencyKey, beneficiary }) =>
    insertPayout.run(idempotencyKey, beneficiary.iban),
});

const app = express();
app.post("/api/v1/transaction", receivePayout);

const port = Number(process.env["PORT"] ?? 3000);
app.listen(port, "127.0.0.1", () => console.log(`listening on port ${port}`));
