import type { RequestHandler } from "express";
import { isSameAs, requirePageToken, type Masker } from "@countersign/inspector/loopback";
import { SandboxError } from "./sandbox-error.ts";

/** Who may ask the service. */
export interface AccessInit {
  readonly apiKey: string;
  /** What the page of this start names in X-Page-Token; undefined where there is no page. */
  readonly pageToken?: string | undefined;
  /** Takes secrets out of what the page gets. */
  readonly mask: Masker;
}

/**
 * Hands on only requests that name `apiKey` in X-API-KEY (spec, "Calls to the service's API"), or the page's token from the page
 * itself.
 */
export function requireAccess({ apiKey, pageToken, mask }: AccessInit): RequestHandler {
  const isApiKey = isSameAs(apiKey);
  const forPage = pageToken === undefined ? undefined : requirePageToken(pageToken, mask);
  return function requireAccessMiddleware(req, res, next) {
    if (isApiKey(req.get("X-API-KEY"))) return next();
    // Who names none has not asked from a page.
    if (forPage === undefined || req.get("X-Page-Token") === undefined)
      return next(new SandboxError("api-key-wrong", "X-API-KEY is missing or wrong"));
    return forPage(req, res, next);
  };
}
