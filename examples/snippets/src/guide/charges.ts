import { guardErrors } from "@countersign/express";
import { idempotencyGuard, idempotencyKeyHeader } from "@countersign/idempotency-guard";
import { jsonBody, rawBody } from "@countersign/raw-body";
import { createSqliteAnswers, createSqliteStores } from "@countersign/store-sqlite";
import express from "express";
import Database from "libsql";

const database = new Database("charges.db");
const once = idempotencyGuard({
  store: createSqliteStores({ database }).idempotency,
  ...idempotencyKeyHeader({ bareKeys: true }),
  replay: { answers: createSqliteAnswers({ database }) },
});

const app = express();
// Put your own authentication in front: whoever gets this far is charged.
app.post("/charges", rawBody(), once, jsonBody(), (req, res) => {
  const { amount } = Object(req.body);
  res.status(201).json({ id: crypto.randomUUID(), amount }); // runs once for each key
});
app.use(guardErrors());

const port = Number(process.env["PORT"] ?? 3000);
app.listen(port, "127.0.0.1", () => console.log(`listening on port ${port}`));
