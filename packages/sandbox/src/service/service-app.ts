import express, { type Express } from "express";
import { requireApiKey } from "./api-key.ts";
import { refuseUnknownPath, sendProblem } from "./problem.ts";
import { serviceRoutes, type RouteTargets } from "./routes.ts";

/** The HTTP interface of the service. The API key comes first: without it not even a path can be told from none. */
export function createServiceApp(apiKey: string, targets: RouteTargets): Express {
  const app = express();
  app.disable("x-powered-by").disable("etag");
  app.use(requireApiKey(apiKey), serviceRoutes(targets), refuseUnknownPath, sendProblem);
  return app;
}
