import type { IdempotencyStore } from "@countersign/idempotency";
import { prometheus } from "@countersign/observe/prometheus";
import type { Express } from "express";
import { register } from "prom-client";

/**
 * Once, where the process starts, after the stores. The route on a port of
 * its own, or closed by the proxy.
 */
export function startMetrics(
  app: Express,
  store: IdempotencyStore,
): () => void {
  app.get("/metrics", (_req, res, next) => {
    register
      .metrics()
      .then((text) => res.type(register.contentType).send(text), next);
  });
  return prometheus({ heldKeys: { payouts: store } });
}
