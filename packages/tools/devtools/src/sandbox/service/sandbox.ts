import {
  createChangeStream,
  createPageToken,
  isSameAs,
  listen,
  pageFiles,
  sendProblems,
} from "../../loopback/index.ts";
import express, { type Express, type RequestHandler } from "express";
import type Database from "libsql";
import { DeliveryService } from "../delivery/delivery-service.ts";
import { createPayoutDesk } from "../page/payout-desk.ts";
import { closeDatabase, openDatabase } from "./database.ts";
import { DocumentStore } from "../documents.ts";
import { resolveSandboxOptions, type ResolvedSandboxOptions, type SandboxOptions } from "./options.ts";
import { bodyError } from "./paths.ts";
import { serviceRoutes, type RouteTargets } from "./routes.ts";
import { SandboxError } from "./sandbox-error.ts";
import { createSimulation, type ChangeKind, type Simulation } from "./simulation.ts";

/** The lending service as it runs. What its methods refuse is a SandboxError, as over HTTP. */
export interface Sandbox extends Pick<
  Simulation,
  | "buyerStatus"
  | "changeBuyerStatus"
  | "changeSellerStatus"
  | "confirmations"
  | "createPaymentRequest"
  | "paymentRequest"
  | "remind"
  | "repay"
  | "sellerStatus"
> {
  /** Where it listens, without a slash at the end. */
  readonly url: string;
  /** The page, with the token of this start as its fragment; undefined without the option `page`. */
  readonly pageUrl: string | undefined;
  readonly deliveries: DeliveryService;
  /** Resolves when requests under way are answered and the database is closed. Unsent webhooks stay in the file. */
  close(): Promise<void>;
}

/** Starts the service on a loopback address. Rejects with a TypeError, a SandboxDatabaseError, or the error of node:net. */
export async function startSandbox(options: SandboxOptions): Promise<Sandbox> {
  const resolved = resolveSandboxOptions(options);
  const database = openDatabase(resolved.database);
  try {
    const parts = createParts(database, resolved);
    const { deliveries, simulation, stream } = parts;
    const pageToken = resolved.page === undefined ? undefined : createPageToken();
    const listening = await listen(createServiceApp(resolved.apiKey, pageToken, parts), resolved);
    deliveries.start();
    let closed: Promise<void> | undefined;
    const end = async (): Promise<void> => {
      stream.close();
      await listening.close();
      await deliveries.stop();
      closeDatabase(database);
    };
    return {
      ...simulation,
      url: listening.url,
      pageUrl: pageToken?.urlOn(listening.url),
      deliveries,
      close: () => (closed ??= end()),
    };
  } catch (error) {
    closeDatabase(database);
    throw error;
  }
}

function createParts(database: Database.Database, resolved: ResolvedSandboxOptions): RouteTargets {
  const { apiKey, clock, speed, ca, forwardedFor, delivery, onAttempt, allowHttp, page } = resolved;
  const store = new DocumentStore(database);
  const stream = createChangeStream<ChangeKind>({
    service: "the sandbox",
    counts: () => deliveries.control.counts(),
  });
  const deliveries: DeliveryService = new DeliveryService({
    store,
    clock,
    speed,
    ca,
    forwardedFor,
    onAttempt,
    onChange: (ids) => stream.changed({ ids }),
    options: delivery,
    // An endpoint's receiver may know the key, and echo it.
    secrets: [apiKey],
  });
  const changed = (kind: ChangeKind): void => stream.changed({ kind });
  const { mask } = deliveries.control;
  const desk = { allowHttp, ca, forwardedFor, clock, mask, changed: () => changed("payouts") };
  return {
    deliveries,
    allowHttp,
    stream,
    simulation: createSimulation({ store, deliveries, clock, changed }),
    payouts: page === undefined ? undefined : createPayoutDesk(page, desk),
  };
}

const pageFolder = new URL("../../../page/sandbox/", import.meta.url);

/** What the page sends in X-Page-Token; undefined without a page. */
type PageToken = ReturnType<typeof createPageToken> | undefined;

/** The API key is checked first: without it every path but the page's looks alike. */
function createServiceApp(apiKey: string, pageToken: PageToken, targets: RouteTargets): Express {
  const app = express();
  app.disable("x-powered-by").disable("etag");
  if (pageToken !== undefined) app.use(pageFiles(pageFolder));
  const forPage = pageToken?.require(targets.deliveries.control.mask);
  app.use(requireAccess(apiKey, forPage), serviceRoutes(targets));
  app.use(...sendProblems({ service: "the sandbox", translate: bodyError }));
  return app;
}

/** Admits `apiKey` in X-API-KEY (spec, "Calls to the service's API"), or the page's token from the page itself. */
function requireAccess(apiKey: string, forPage: RequestHandler | undefined): RequestHandler {
  const isApiKey = isSameAs(apiKey);
  return function requireAccessMiddleware(req, res, next) {
    if (isApiKey(req.get("X-API-KEY"))) return next();
    // Without the header, the request is not of a page.
    if (forPage === undefined || req.get("X-Page-Token") === undefined)
      return next(new SandboxError("api-key-wrong", "X-API-KEY is missing or wrong"));
    return forPage(req, res, next);
  };
}
