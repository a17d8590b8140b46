import { payoutEndpoint } from "countersign/payout";
import { createStores } from "@countersign/store-sql";
import express, { type Express } from "express";
import Database from "libsql";

// TEST KEY of RFC 9421 appendix B.1.4; put the service's public key here.
const testKey = "JrQLj5P/89iXES9+vFgrIy29clF9CC/oPPsw3c5D0bs=";

const database = new Database(process.env["DATABASE_FILE"] ?? ":memory:");
database.exec(
  `CREATE TABLE IF NOT EXISTS payouts
    (idempotency_key TEXT NOT NULL UNIQUE) STRICT`,
);
const insertPayout = database.prepare(
  "INSERT INTO payouts (idempotency_key) VALUES (?)",
);

const receivePayout = payoutEndpoint({
  addresses: { allow: ["192.0.2.10", "198.51.100.0/28"] },
  signature: { keys: { "test-key-ed25519": testKey } },
  stores: createStores({ database }),
  // In one transaction with the payout's key: it stays when this returns.
  pay: ({ idempotencyKey }) => insertPayout.run(idempotencyKey),
});

export const app: Express = express();
app.post("/api/v1/transaction", receivePayout);
