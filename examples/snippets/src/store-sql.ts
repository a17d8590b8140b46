import { fromPg } from "@countersign/store-sql/pg";
import { payoutEndpoint } from "countersign/payout";
import { createStores } from "@countersign/store-sql";
import express, { type Express } from "express";
import { Pool } from "pg";

// TEST KEY of RFC 9421 appendix B.1.4; put the service's public key here.
const testKey = "JrQLj5P/89iXES9+vFgrIy29clF9CC/oPPsw3c5D0bs=";

const pool = new Pool({ connectionString: process.env["DATABASE_URL"] });
// Without a listener, the loss of a resting connection ends the process.
pool.on("error", (error) => console.error(error.message));

const select = "SELECT FROM businesses WHERE id = $1 AND iban = $2";
const stores = createStores({ database: fromPg(pool) });
const receivePayout = payoutEndpoint({
  addresses: { allow: ["192.0.2.10"] },
  signature: { keys: { "test-key-ed25519": testKey } },
  stores,
  findBusiness: async ({ businessId, iban }) =>
    (await pool.query(select, [businessId, iban])).rowCount === 1,
  async pay({ idempotencyKey: key }, { tx }) {
    await tx.query("INSERT INTO payouts (key) VALUES ($1)", [key]);
  },
});

export const app: Express = express();
app.post("/api/v1/transaction", receivePayout);
