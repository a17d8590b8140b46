import { payoutEndpoint } from "@countersign/payout";
import { createSqliteStores, withImmediateTransaction } from "@countersign/store-sqlite";
import express, { type Express } from "express";
import Database from "libsql";

// TEST KEY of RFC 9421 appendix B.1.4; put the service's public key here.
const testKey = "JrQLj5P/89iXES9+vFgrIy29clF9CC/oPPsw3c5D0bs=";

const database = new Database(process.env["DATABASE_FILE"] ?? ":memory:");
database.exec("CREATE TABLE IF NOT EXISTS payouts (idempotency_key TEXT NOT NULL UNIQUE) STRICT");
const insertPayout = database.prepare("INSERT INTO payouts (idempotency_key) VALUES (?)");

export const { idempotency, nonces } = createSqliteStores({ database });
const receivePayout = payoutEndpoint({
  addresses: { allow: ["192.0.2.10", "198.51.100.0/28"] },
  signature: { keys: { "test-key-ed25519": testKey }, nonces },
  idempotency: { store: idempotency, recovery: "rerun" },
});

export const app: Express = express();

app.post("/api/v1/transaction", receivePayout, (req, res) => {
  const attempt = req.idempotency;
  if (attempt === undefined) throw new Error("payoutEndpoint() must come first");
  withImmediateTransaction(database, (tx) => {
    const completed = attempt.completeIn(tx); // first: throws when another attempt owns the key, or it is paid
    insertPayout.run(attempt.key);
    return completed;
  });
  res.json({ accepted: attempt.key });
});
