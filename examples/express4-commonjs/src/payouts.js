const { readFileSync } = require("node:fs");
const { captureRawBody, payoutEndpoint, payoutOf } = require("@countersign/payout");
const { createSqliteStores, withImmediateTransaction } = require("@countersign/store-sqlite");
const express = require("express4");
const Database = require("libsql");

const database = new Database("platform.db");
database.exec("CREATE TABLE IF NOT EXISTS payouts (idempotency_key TEXT PRIMARY KEY, iban TEXT) STRICT");
const insertPayout = database.prepare("INSERT INTO payouts VALUES (?, ?)");
const stores = createSqliteStores({ database });

const receivePayout = payoutEndpoint({
  addresses: { allow: ["127.0.0.1"] }, // from where the service calls
  signature: { keys: JSON.parse(readFileSync("keys/keys.json", "utf8")), nonces: stores.nonces },
  idempotency: { store: stores.idempotency, recovery: "rerun" },
});

const app = express();
app.use(express.json({ verify: captureRawBody })); // the parser of your app hands over the bytes that it saw
app.post("/api/v1/transaction", receivePayout, (req, res) => {
  const { idempotencyKey, beneficiary } = payoutOf(req);
  withImmediateTransaction(database, (tx) => {
    const completed = req.idempotency.completeIn(tx); // first: payout and key commit together
    insertPayout.run(idempotencyKey, beneficiary.iban);
    return completed;
  });
  res.json({ status: "acknowledged" });
});

const port = Number(process.env.PORT ?? 3000);
app.listen(port, "127.0.0.1", () => console.log(`listening on port ${port}`));
