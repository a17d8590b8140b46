import { guardErrors } from "@countersign/express";
import { memoryIdempotencyStore } from "@countersign/idempotency";
import { idempotencyGuard } from "@countersign/idempotency-guard";
import { jsonBody, rawBody } from "@countersign/raw-body";
import express, { type Express, type RequestHandler } from "express";

// For one process on a laptop: in production give a durable store.
const store = memoryIdempotencyStore();
const key = ({ body }: { body?: unknown }): unknown =>
  Object(body).idempotency_key;

/** `authenticate` refuses strangers before they can claim a key. */
export function createApp(authenticate: RequestHandler): Express {
  const app = express();
  app.post(
    "/orders",
    authenticate,
    rawBody(),
    jsonBody(),
    idempotencyGuard({ store, scope: "orders", key }),
    (req, res) => {
      // Runs at most once for each key that ends in a 2xx; the 2xx leaves
      // when the store has recorded it.
      res.json({ ordered: req.idempotency?.key });
    },
  );
  return app.use(guardErrors());
}
