import type { RequestIdempotency } from "@countersign/idempotency-guard";
import { payoutEndpoint } from "countersign/payout";
import { createRedisStores } from "@countersign/store-redis";
import express, { type Express } from "express";
import { Pool } from "pg";
import { createClient } from "redis";

// TEST KEY of RFC 9421 appendix B.1.4; put the service's public key here.
const testKey = "JrQLj5P/89iXES9+vFgrIy29clF9CC/oPPsw3c5D0bs=";

const client = createClient({
  url: process.env["REDIS_URL"] ?? "redis://127.0.0.1:6379",
  disableOfflineQueue: true,
});
client.on("error", (error: Error) => console.error("Redis:", error.message));
const pool = new Pool({
  connectionString: process.env["DATABASE_URL"],
  connectionTimeoutMillis: 2_000,
});
pool.on("error", (error) => console.error("PostgreSQL:", error.message));

export const { idempotency, nonces } = createRedisStores({
  sendCommand: (command) => client.sendCommand([...command]),
});
const receivePayout = payoutEndpoint({
  addresses: { allow: ["192.0.2.10", "198.51.100.0/28"] },
  signature: { keys: { "test-key-ed25519": testKey }, nonces },
  // "rerun" only because of the UNIQUE key of the payouts.
  idempotency: { store: idempotency, recovery: "rerun" },
});

const pay = async ({ key }: RequestIdempotency): Promise<void> => {
  // No row: it was paid before, and Redis has forgotten it. Paying is what
  // happens for rows alone.
  await pool.query(
    `INSERT INTO payouts (idempotency_key) VALUES ($1)
     ON CONFLICT DO NOTHING`,
    [key],
  );
};

export const app: Express = express();

app.post("/api/v1/transaction", receivePayout, (req, res, next) => {
  const attempt = req.idempotency;
  if (attempt === undefined)
    throw new Error("payoutEndpoint() must come first");
  pay(attempt).then(() => res.json({ accepted: attempt.key }), next);
});

export const start = async (): Promise<void> => {
  await client.connect();
  app.listen(3000);
};
