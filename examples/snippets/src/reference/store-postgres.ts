import type { RequestIdempotency } from "@countersign/idempotency-guard";
import { payoutEndpoint } from "@countersign/payout";
import { createPostgresStores, withPostgresTransaction } from "@countersign/store-postgres";
import express, { type Express } from "express";
import { Pool } from "pg";

// TEST KEY of RFC 9421 appendix B.1.4; put the service's public key here.
const testKey = "JrQLj5P/89iXES9+vFgrIy29clF9CC/oPPsw3c5D0bs=";

const connectionString = process.env["DATABASE_URL"];
// The stores have a pool of their own: behind the handlers' transactions a heartbeat would come too late.
const [keys, payouts] = [connect(5), connect(20)];
export const { idempotency, nonces, ready } = createPostgresStores({ pool: keys });
const receivePayout = payoutEndpoint({
  addresses: { allow: ["192.0.2.10", "198.51.100.0/28"] },
  signature: { keys: { "test-key-ed25519": testKey }, nonces },
  idempotency: { store: idempotency, recovery: "rerun" },
});

async function pay(attempt: RequestIdempotency): Promise<void> {
  try {
    await withPostgresTransaction(payouts, async (client) => {
      await attempt.completeIn(client); // first: locks the key, and throws when it is another attempt's, or paid
      await client.query("INSERT INTO payouts (idempotency_key) VALUES ($1)", [attempt.key]);
    });
  } catch (error) {
    // When the reply to COMMIT was lost, the record tells whether it went through, and whose it was.
    if (!(await attempt.committed())) throw error;
  }
}

export const app: Express = express();
app.post("/api/v1/transaction", receivePayout, (req, res, next) => {
  const attempt = req.idempotency;
  if (attempt === undefined) throw new Error("payoutEndpoint() must come first");
  pay(attempt).then(() => res.json({ accepted: attempt.key }), next);
});

function connect(max: number): Pool {
  const pool = new Pool({ connectionString, max, connectionTimeoutMillis: 2_000 });
  return pool.on("error", (error) => console.error("a resting connection has ended:", error.message));
}
