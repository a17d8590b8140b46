import { idempotencyGuard } from "@countersign/idempotency-guard";
import { rawBody } from "@countersign/raw-body";
import { createSqliteStores, withImmediateTransaction } from "@countersign/store-sqlite";
import express, { type Express } from "express";
import Database from "libsql";

const database = new Database(process.env["DATABASE_FILE"] ?? ":memory:");
database.exec("CREATE TABLE IF NOT EXISTS payouts (idempotency_key TEXT NOT NULL UNIQUE) STRICT");
const insertPayout = database.prepare("INSERT INTO payouts (idempotency_key) VALUES (?)");

export const { idempotency, nonces } = createSqliteStores({ database });
const onePayout = idempotencyGuard({
  store: idempotency,
  key: (req) => req.headers["idempotency-key"],
  recovery: "rerun",
});

export const app: Express = express();

app.post("/payouts", rawBody(), onePayout, (req, res) => {
  const attempt = req.idempotency;
  if (attempt === undefined) throw new Error("idempotencyGuard() must come first");
  withImmediateTransaction(database, (tx) => {
    const completed = attempt.completeIn(tx); // first: throws when another attempt owns the key, or it is paid
    insertPayout.run(attempt.key);
    return completed;
  });
  res.json({ accepted: attempt.key });
});
