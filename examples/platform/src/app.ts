import { guardErrors } from "@countersign/guard";
import express, { type ErrorRequestHandler, type Express } from "express";
import helmet from "helmet";
import type { Logger } from "pino";
import type { InFlight } from "./in-flight.ts";
import { acceptPayout, payoutGuards, type PayoutRouteParts } from "./payout-route.ts";

/** What the app serves from. */
export interface AppParts extends PayoutRouteParts {
  readonly inFlight: InFlight;
}

/** The Express app: the payout route, health, readiness and, when asked for, the inspection of payouts. */
export function createApp(parts: AppParts): Express {
  const { settings, inFlight, ledger, logger } = parts;
  const app = express();
  // The signed path is the path as sent: /API/v1/transaction/ is another one.
  app.enable("case sensitive routing");
  app.enable("strict routing");
  app.set("trust proxy", settings.trustProxy.length === 0 ? false : [...settings.trustProxy]);
  app.use(inFlight.middleware);
  app.use(helmet());
  app.post(settings.payoutPath, payoutGuards(parts), acceptPayout(parts));
  app.get("/healthz", (_req, res) => void res.json({ status: "ok" }));
  app.get("/readyz", async (_req, res) => {
    const ready = !inFlight.draining && (await isStoreReady(parts));
    res.status(ready ? 200 : 503).json({ status: ready ? "ready" : "unavailable" });
  });
  if (settings.inspect) app.get("/inspect/payouts", (_req, res) => void res.json(ledger.inspect()));
  // What the handler itself gave up: its attempt lost the key while it ran.
  app.use(guardErrors({ onReject: (error) => logger.warn({ err: error }, "a payout was given up") }));
  app.use(lastResort(logger));
  return app;
}

async function isStoreReady({ stores, logger }: AppParts): Promise<boolean> {
  try {
    await stores.idempotency.read("readyz");
    return true;
  } catch (error) {
    logger.error({ err: error }, "the store does not answer");
    return false;
  }
}

// What no guard and no route answered: a bug or a broken database. The caller learns nothing of it.
function lastResort(logger: Logger): ErrorRequestHandler {
  return (error: unknown, _req, res, next) => {
    logger.error({ err: error }, "a request failed");
    if (res.headersSent) {
      next(error);
      return;
    }
    res.status(500).type("application/problem+json");
    res.send(JSON.stringify({ type: "about:blank", title: "Internal Server Error", status: 500 }));
  };
}
