import { idempotencyGuard, type RequestIdempotency } from "@countersign/idempotency-guard";
import { rawBody } from "@countersign/raw-body";
import { createPostgresStores, withPostgresTransaction } from "@countersign/store-postgres";
import express, { type Express } from "express";
import { Pool } from "pg";

const pool = new Pool({ connectionString: process.env["DATABASE_URL"], connectionTimeoutMillis: 2_000 });
pool.on("error", (error) => console.error("a connection that rested in the pool has ended:", error.message));

export const { idempotency, nonces, ready } = createPostgresStores({ pool });
const onePayout = idempotencyGuard({
  store: idempotency,
  key: (req) => req.headers["idempotency-key"],
  recovery: "rerun",
});

const pay = (attempt: RequestIdempotency): Promise<void> =>
  withPostgresTransaction(pool, async (client) => {
    await client.query("INSERT INTO payouts (idempotency_key) VALUES ($1)", [attempt.key]);
    await attempt.completeIn(client); // throws, and so rolls back, when another attempt owns the key
  });

export const app: Express = express();

app.post("/payouts", rawBody(), onePayout, (req, res, next) => {
  const attempt = req.idempotency;
  if (attempt === undefined) throw new Error("idempotencyGuard() must come first");
  pay(attempt).then(() => res.json({ accepted: attempt.key }), next);
});
