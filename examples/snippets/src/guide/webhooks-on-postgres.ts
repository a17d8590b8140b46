import { fromPg } from "@countersign/store-sql/pg";
import { guardErrors } from "@countersign/express";
import { answer, idempotencyGuard } from "@countersign/idempotency-guard";
import { jsonBody } from "@countersign/raw-body";
import { createStores } from "@countersign/store-sql";
import { webhookHmac } from "@countersign/webhook-hmac";
import express, { type Express } from "express";
import type { Pool } from "pg";

/** Needs CREATE TABLE deliveries (id text PRIMARY KEY, body jsonb). */
export function createApp(pool: Pool, secrets: readonly string[]): Express {
  // Without it, losing an idle connection ends the process.
  pool.on("error", (error) => console.error(error.message));

  const verify = webhookHmac({ scheme: "github", secrets, limit: "25mb" });
  const once = idempotencyGuard({
    stores: createStores({ database: fromPg(pool) }),
    scope: "github",
    key: (req) => req.headers["x-github-delivery"],
    // A later attempt of a delivery may have other bytes.
    fingerprint: () => "delivery",
    doneStatus: 200,
    async handle(req, { tx }) {
      const id = req.headers["x-github-delivery"];
      const insert = "INSERT INTO deliveries VALUES ($1, $2)";
      await tx.query(insert, [id, JSON.stringify(req.body)]);
      return answer(200, { received: true });
    },
  });

  const app = express();
  app.post("/webhooks/github", verify, jsonBody(), once);
  return app.use(guardErrors());
}
