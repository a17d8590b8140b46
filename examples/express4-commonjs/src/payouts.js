const { readFileSync } = require("node:fs");
const { captureRawBody, payoutEndpoint } = require("countersign/payout");
const { createStores } = require("@countersign/store-sql");
const express = require("express4");
const Database = require("libsql");

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
  // Any valid IBAN is paid, until findBusiness asks your records.
  // In one transaction with the payout's key: it stays when this returns.
  pay: ({ idempotencyKey, beneficiary }) =>
    insertPayout.run(idempotencyKey, beneficiary.iban),
});

const app = express();
// The parser of your app hands over the bytes that it saw.
app.use(express.json({ verify: captureRawBody }));
app.post("/api/v1/transaction", receivePayout);

const port = Number(process.env.PORT ?? 3000);
app.listen(port, "127.0.0.1", () => console.log(`listening on port ${port}`));
