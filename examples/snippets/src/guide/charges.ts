import { guardErrors } from "@countersign/express";
import {
  answer,
  idempotencyGuard,
  idempotencyKeyHeader,
} from "@countersign/idempotency-guard";
import { jsonBody, rawBody } from "@countersign/raw-body";
import { createAnswers, createStores } from "@countersign/store-sql";
import express from "express";
import Database from "libsql";

const database = new Database("charges.db");
database.exec("CREATE TABLE IF NOT EXISTS charges (id TEXT, amount INTEGER)");

// To try it: put your own authentication in its place.
const users = new Map([["Bearer test-token", "user-1"]]);

const charge = idempotencyGuard({
  ...idempotencyKeyHeader({
    bareKeys: true,
    // Each user has keys of their own, and nobody gets another's answer.
    caller: ({ headers }) => users.get(headers.authorization ?? ""),
  }),
  stores: createStores({ database }),
  scope: "charges",
  replay: { answers: createAnswers({ database }) },
  // Runs once for each key: its row, the key and the answer commit together.
  handle(req, { tx }) {
    const { amount } = Object(req.body);
    const id = crypto.randomUUID();
    tx.prepare("INSERT INTO charges VALUES (?, ?)").run(id, amount);
    return answer(201, { id, amount });
  },
});

const app = express();
app.use("/charges", (req, res, next) => {
  if (users.has(req.headers.authorization ?? "")) next();
  else res.sendStatus(401);
});
app.post("/charges", rawBody(), jsonBody(), charge);
app.use(guardErrors());

const port = Number(process.env["PORT"] ?? 3000);
app.listen(port, "127.0.0.1", () => console.log(`listening on port ${port}`));
