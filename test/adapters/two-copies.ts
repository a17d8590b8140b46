// The first request of a process, through a router of another copy of Express than the app's. Each row has a file of its own: what
// one request has shown of a copy stays known.
import { memoryIdempotencyStore } from "@countersign/idempotency";
import { idempotencyGuard } from "@countersign/idempotency-guard";
import { expect } from "@jest/globals";
import type { ErrorRequestHandler, Express, Router } from "express";
import { afterTest } from "../support/runs/after-test.ts";
import { close, listen, send } from "../support/servers/http-client.ts";
import { samplePath } from "../support/signers/independent-signer.ts";
import { signPayout } from "./payout-scene.ts";

/** The handler throws, and the app's error handler responds 200: nobody knows whether it has paid. */
export async function assertHeld(app: Express, router: Router): Promise<void> {
  const store = memoryIdempotencyStore();
  const guard = idempotencyGuard({ store, scope: "test", key: () => "k", fingerprint: () => "f" });
  router.use(guard);
  router.post(samplePath, () => {
    throw new Error("the bank said no");
  });
  const answerAll: ErrorRequestHandler = (_error, _req, res, _next) => void res.status(200).end();
  app.set("env", "test");
  app.use(router).use(answerAll);
  const { server, port } = await listen(app);
  afterTest(() => close(server));
  const { status } = await send(port, signPayout());
  const { entries } = store.list({ state: "held", limit: 9 });
  expect({ status, held: entries.length }).toEqual({ status: 500, held: 1 });
}
