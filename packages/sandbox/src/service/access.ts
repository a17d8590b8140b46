import { createHash, timingSafeEqual } from "node:crypto";
import type { Request, RequestHandler } from "express";
import type { Masker } from "../delivery/masking.ts";
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
 * itself: a browser says of a request where it comes from.
 */
export function requireAccess({ apiKey, pageToken, mask }: AccessInit): RequestHandler {
  const isApiKey = isSameAs(apiKey);
  const isPageToken = pageToken === undefined ? () => false : isSameAs(pageToken);
  return function requireAccessMiddleware(req, res, next) {
    if (isApiKey(req.get("X-API-KEY"))) return next();
    if (!isPageToken(req.get("X-Page-Token")))
      return next(new SandboxError("api-key-wrong", "X-API-KEY is missing or wrong"));
    if (!isLoopbackHost(req)) return next(new SandboxError("host-refused", hostRefused));
    if (!isFromPage(req)) return next(new SandboxError("origin-refused", "ask from the page itself"));
    const json = res.json.bind(res);
    res.json = (body: unknown) => json(mask(body));
    return next();
  };
}

/** Refuses every name but those of loopback: one that a stranger's DNS has led here would let its page read this one. */
export const requireLoopbackHost: RequestHandler = (req, _res, next) => {
  next(isLoopbackHost(req) ? undefined : new SandboxError("host-refused", hostRefused));
};

const hostRefused = "open the page as 127.0.0.1 or localhost";

// With any port: a tunnel from another machine has one of its own.
function isLoopbackHost(req: Request): boolean {
  return /^(?:localhost|127(?:\.\d{1,3}){3}|\[::1\])(?::\d{1,5})?$/i.test(req.get("Host") ?? "");
}

// Older browsers say nothing of the site of a reading; the origin of a write all of them say.
function isFromPage(req: Request): boolean {
  const { "sec-fetch-site": site = "same-origin", origin } = req.headers;
  if (site !== "same-origin") return false;
  if (origin === undefined) return req.method === "GET" || req.method === "HEAD";
  return origin === `http://${req.get("Host")}`;
}

// Digests have one length, so neither the length nor the beginning of a secret shows in the time of the comparison.
function isSameAs(expected: string): (text: string | undefined) => boolean {
  const wanted = digest(expected);
  return (text = "") => timingSafeEqual(digest(text), wanted);
}

function digest(text: string): Buffer {
  return createHash("sha256").update(text).digest();
}
