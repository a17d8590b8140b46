import express, { type Express } from "express";
import { pageFiles } from "../page/page-files.ts";
import { requireAccess, type AccessInit } from "./access.ts";
import { refuseUnknownPath, sendProblem } from "./problem.ts";
import { serviceRoutes, type RouteTargets } from "./routes.ts";

/** The HTTP interface of the service. The API key comes first: without it not even a path can be told from none, but the page's. */
export function createServiceApp(access: AccessInit, targets: RouteTargets): Express {
  const app = express();
  app.disable("x-powered-by").disable("etag");
  if (access.pageToken !== undefined) app.use(pageFiles());
  app.use(requireAccess(access), serviceRoutes(targets), refuseUnknownPath, sendProblem);
  return app;
}
