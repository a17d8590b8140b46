import type { RequestHandler, Router } from "express";
import { refuseOtherMethods } from "@countersign/inspector/loopback";
import { jsonBody } from "./json-body.ts";

/** What a path does on GET, and on POST with a JSON body. */
export interface PathMethods {
  readonly get?: RequestHandler | undefined;
  readonly post?: RequestHandler | undefined;
}

/** Adds a path; the methods that it does not have are refused. */
export function addPath(router: Router, path: string, { get, post }: PathMethods): void {
  const route = router.route(path);
  if (get !== undefined) route.get(get);
  if (post !== undefined) route.post(...jsonBody, post);
  const allowed = [get && "GET, HEAD", post && "POST"].filter((methods) => methods !== undefined);
  route.all(refuseOtherMethods(allowed.join(", ")));
}
