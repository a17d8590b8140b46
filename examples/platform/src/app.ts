import { withDeadline } from "@countersign/core";
import { guardErrors, type Drainable } from "@countersign/express";
import type { KeyUse } from "@countersign/http-signature-verify";
import express, { type ErrorRequestHandler, type Express } from "express";
import helmet from "helmet";
import type { Logger } from "pino";
import type { PartyLedger } from "./ledgers/parties.ts";
import { acceptPayout, logAccepted, receivePayouts, type PayoutRouteParts } from "./payout-route.ts";
import { createPartyHandler, webhookRoute } from "./webhook-route.ts";

const readinessTimeoutMs = 2_000;

/** What the app serves from. */
export interface AppParts extends PayoutRouteParts {
  readonly parties: PartyLedger;
  /** createApp() adds what owns keys: a payout whose record the store did not take at once is recorded at the end of the process. */
  readonly endpoints: Drainable[];
  readonly isClosing: () => boolean;
  /** The keyids that are accepted now, and those that have been used. */
  readonly inspectKeys: () => { readonly accepted: readonly string[]; readonly used: readonly KeyUse[] };
}

/** The Express app: the payout route, the webhook route, health, readiness and, when asked for, the inspection. */
export function createApp(parts: AppParts): Express {
  const { settings, stores, endpoints, logger, parties } = parts;
  const app = express();
  // The signed path is the path as sent: /API/v1/transaction/ is another one.
  app.enable("case sensitive routing");
  app.enable("strict routing");
  app.set("trust proxy", settings.trustProxy.length === 0 ? false : [...settings.trustProxy]);
  app.use(helmet());
  const receivePayout = receivePayouts(parts);
  endpoints.push(receivePayout);
  app.post(settings.payoutPath, logAccepted(parts), receivePayout);
  if (stores.transactions === undefined) app.post(settings.payoutPath, acceptPayout(parts));
  if (settings.webhook !== undefined) {
    const handler = createPartyHandler(stores, parties, logger);
    endpoints.push(handler);
    app.use(settings.webhook.path, webhookRoute(settings.webhook, handler, logger));
  }
  app.get("/healthz", (_req, res) => void res.json({ status: "ok" }));
  app.get("/readyz", async (_req, res) => {
    const ready = !parts.isClosing() && (await isStorageReady(parts));
    res.status(ready ? 200 : 503).json({ status: ready ? "ready" : "unavailable" });
  });
  if (settings.inspect) {
    app.get("/inspect/payouts", async (_req, res) => void res.json(await parts.ledger.inspect()));
    app.get("/inspect/events", async (_req, res) => void res.json(await parties.inspectEvents()));
    app.get("/inspect/keys", (_req, res) => void res.json(parts.inspectKeys()));
    app.get("/inspect/state", async (_req, res) => void res.json(await parties.inspectState()));
  }
  // What the handler itself gave up: its attempt lost the key while it ran.
  app.use(guardErrors({ onReject: (error) => logger.warn({ err: error }, "a payout was given up") }));
  app.use(lastResort(logger));
  return app;
}

async function isStorageReady({ stores, ledger, logger }: AppParts): Promise<boolean> {
  try {
    const looks = Promise.all([stores.idempotency.read("readyz"), ledger.check()]);
    await withDeadline(looks, readinessTimeoutMs, () => new Error(`no answer in ${readinessTimeoutMs} ms`));
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
    res.json({ type: "about:blank", title: "Internal Server Error", status: 500 });
  };
}
