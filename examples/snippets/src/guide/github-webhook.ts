import { guardErrors } from "@countersign/express";
import { answer, idempotencyGuard } from "@countersign/idempotency-guard";
import { jsonBody } from "@countersign/raw-body";
import { createStores } from "@countersign/store-sql";
import { webhookHmac } from "@countersign/webhook-hmac";
import express from "express";
import Database from "libsql";

const database = new Database("webhooks.db");
database.exec("CREATE TABLE IF NOT EXISTS deliveries (id TEXT, body TEXT)");
const insert = database.prepare("INSERT INTO deliveries VALUES (?, ?)");

const verify = webhookHmac({
  scheme: "github",
  // One, or while it changes "the new one,the old one".
  secrets: (process.env["WEBHOOK_SECRET"] ?? "")
    .split(",")
    .map((secret) => secret.trim()),
  limit: "25mb", // GitHub's own
});
const once = idempotencyGuard({
  stores: createStores({ database }),
  scope: "github",
  key: (req) => req.headers["x-github-delivery"],
  // A later attempt of a delivery may have other bytes.
  fingerprint: () => "delivery",
  doneStatus: 200,
  // Runs once for each delivery: its row and the key commit together.
  handle(req) {
    const id = req.headers["x-github-delivery"];
    insert.run(id, JSON.stringify(req.body));
    return answer(200, { received: true });
  },
});

const app = express();
app.post("/webhooks/github", verify, jsonBody(), once);
app.use(guardErrors());

const port = Number(process.env["PORT"] ?? 3000);
app.listen(port, "127.0.0.1", () => console.log(`listening on port ${port}`));
