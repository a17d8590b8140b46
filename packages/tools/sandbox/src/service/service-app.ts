import express, { type Express } from "express";
import { pageFiles, refuseUnknownPath, sendProblem } from "@countersign/inspector/loopback";
import { requireAccess, type AccessInit } from "./access.ts";
import { bodyError } from "./json-body.ts";
import { serviceRoutes, type RouteTargets } from "./routes.ts";

const pageFolder = new URL("../../page/", import.meta.url);

/** The HTTP interface of the service. The API key comes first: without it not even a path can be told from none, but the page's. */
export function createServiceApp(access: AccessInit, targets: RouteTargets): Express {
  const app = express();
  app.disable("x-powered-by").disable("etag");
  if (access.pageToken !== undefined) app.use(pageFiles(pageFolder));
  app.use(requireAccess(access), serviceRoutes(targets), refuseUnknownPath);
  app.use(sendProblem({ service: "the sandbox", translate: bodyError }));
  return app;
}
