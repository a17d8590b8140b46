import { guardErrors } from "@countersign/express";
import { idempotencyGuard } from "@countersign/idempotency-guard";
import { jsonBody } from "@countersign/raw-body";
import { createSqliteStores } from "@countersign/store-sqlite";
import { webhookHmac } from "@countersign/webhook-hmac";
import express from "express";
import Database from "libsql";

const { idempotency: store } = createSqliteStores({
  database: new Database("webhooks.db"),
});
const verify = webhookHmac({
  scheme: "github",
  // One, or while it changes "the new one,the old one".
  secrets: (process.env["WEBHOOK_SECRET"] ?? "").split(","),
  limit: "25mb", // GitHub's own
});
const once = idempotencyGuard({
  store,
  key: (req) => req.headers["x-github-delivery"],
  doneStatus: 200,
});

const app = express();
app.post("/webhooks/github", verify, once, jsonBody(), (req, res) => {
  const { action } = Object(req.body);
  console.log(req.headers["x-github-event"], action);
  res.json({ received: true });
});
app.use(guardErrors());

const port = Number(process.env["PORT"] ?? 3000);
app.listen(port, "127.0.0.1", () => console.log(`listening on port ${port}`));
