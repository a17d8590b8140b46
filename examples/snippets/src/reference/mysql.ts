import { fromMysql2 } from "@countersign/store-sql/mysql2";
import { payoutEndpoint } from "countersign/payout";
import { createStores } from "@countersign/store-sql";
import express, { type Express } from "express";
import { createPool } from "mysql2/promise";

// TEST KEY of RFC 9421 appendix B.1.4; put the service's public key here.
const testKey = "JrQLj5P/89iXES9+vFgrIy29clF9CC/oPPsw3c5D0bs=";

const pool = createPool(process.env["MYSQL_URL"] ?? "mysql://127.0.0.1/test");
export const stores = createStores({ database: fromMysql2(pool) });

const receivePayout = payoutEndpoint({
  addresses: { allow: ["192.0.2.10", "198.51.100.0/28"] },
  signature: { keys: { "test-key-ed25519": testKey } },
  stores,
  // In one transaction with the payout's key: it stays when COMMIT has been
  // answered.
  pay: async ({ idempotencyKey }, { tx }) => {
    await tx.query("INSERT INTO payouts (idempotency_key) VALUES (?)", [
      idempotencyKey,
    ]);
  },
});

export const app: Express = express();
app.post("/api/v1/transaction", receivePayout);
