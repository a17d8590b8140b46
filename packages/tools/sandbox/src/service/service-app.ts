import express, { type Express, type RequestHandler } from "express";
import { isSameAs, pageFiles, sendProblems, type createPageToken } from "@countersign/inspector/loopback";
import { bodyError } from "./paths.ts";
import { serviceRoutes, type RouteTargets } from "./routes.ts";
import { SandboxError } from "./sandbox-error.ts";

export interface AccessInit {
  readonly apiKey: string;
  /** What the page sends in X-Page-Token; undefined without a page. */
  readonly pageToken: ReturnType<typeof createPageToken> | undefined;
}

const pageFolder = new URL("../../page/", import.meta.url);

/** The API key is checked first: without it every path but the page's looks alike. */
export function createServiceApp(access: AccessInit, targets: RouteTargets): Express {
  const app = express();
  app.disable("x-powered-by").disable("etag");
  if (access.pageToken !== undefined) app.use(pageFiles(pageFolder));
  app.use(requireAccess(access, targets), serviceRoutes(targets));
  app.use(...sendProblems({ service: "the sandbox", translate: bodyError }));
  return app;
}

/** Admits `apiKey` in X-API-KEY (spec, "Calls to the service's API"), or the page's token from the page itself. */
function requireAccess({ apiKey, pageToken }: AccessInit, { deliveries }: RouteTargets): RequestHandler {
  const isApiKey = isSameAs(apiKey);
  const forPage = pageToken?.require(deliveries.control.mask);
  return function requireAccessMiddleware(req, res, next) {
    if (isApiKey(req.get("X-API-KEY"))) return next();
    // Without the header, the request is not of a page.
    if (forPage === undefined || req.get("X-Page-Token") === undefined)
      return next(new SandboxError("api-key-wrong", "X-API-KEY is missing or wrong"));
    return forPage(req, res, next);
  };
}
