import { createHash, randomBytes, timingSafeEqual } from "node:crypto";
import type { Request, RequestHandler } from "express";
import type { Masker } from "./masking.ts";
import { serviceError } from "./problem.ts";

/** Makes a start's token, the page's address with it (as the fragment, it reaches no server and no log), and what admits it. */
export function createPageToken() {
  // 144 bits; the address fits into 60 columns.
  const text = randomBytes(18).toString("base64url");
  return {
    urlOn: (url: string): string => `${url}/#token=${text}`,
    require: (mask: Masker): RequestHandler => requirePageToken(text, mask),
  };
}

/** Admits only requests with this start's token in X-Page-Token, a loopback Host and the page's own origin; masks their answers. */
function requirePageToken(text: string, mask: Masker): RequestHandler {
  const isPageToken = isSameAs(text);
  return function requirePageTokenMiddleware(req, res, next) {
    if (!isPageToken(req.get("X-Page-Token")))
      return next(serviceError("token-wrong", "X-Page-Token is missing or wrong"));
    if (!isLoopbackHost(req)) return next(serviceError("host-refused", hostRefused));
    if (!isFromPage(req)) return next(serviceError("origin-refused", "ask from the page itself"));
    const json = res.json.bind(res);
    res.json = (body: unknown) => json(mask(body));
    return next();
  };
}

/** Refuses a Host that is not loopback: DNS rebinding would let another page read this one. */
export const requireLoopbackHost: RequestHandler = (req, _res, next) => {
  next(isLoopbackHost(req) ? undefined : serviceError("host-refused", hostRefused));
};

const hostRefused = "open the page as 127.0.0.1 or localhost";

// Any port: a tunnel from another machine has its own.
function isLoopbackHost(req: Request): boolean {
  return /^(?:localhost|127(?:\.\d{1,3}){3}|\[::1\])(?::\d{1,5})?$/i.test(req.get("Host") ?? "");
}

// Older browsers send no Sec-Fetch-Site with a GET; all send Origin with a POST.
function isFromPage(req: Request): boolean {
  const { "sec-fetch-site": site = "same-origin", origin } = req.headers;
  if (site !== "same-origin") return false;
  if (origin === undefined) return req.method === "GET" || req.method === "HEAD";
  return origin === `http://${req.get("Host")}`;
}

/** Compares in constant time; digests also hide the length. */
export function isSameAs(expected: string): (text: string | undefined) => boolean {
  const wanted = digest(expected);
  return (text = "") => timingSafeEqual(digest(text), wanted);
}

function digest(text: string): Buffer {
  return createHash("sha256").update(text).digest();
}
