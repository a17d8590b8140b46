import { createHash, timingSafeEqual } from "node:crypto";
import type { RequestHandler } from "express";
import { SandboxError } from "./sandbox-error.ts";

/** Hands on only requests that name `apiKey` in X-API-KEY (spec, "Calls to the service's API"). */
export function requireApiKey(apiKey: string): RequestHandler {
  const expected = digest(apiKey);
  return function requireApiKeyMiddleware(req, _res, next) {
    // Digests have one length, so neither the length nor the beginning of the key shows in the time of the comparison.
    if (timingSafeEqual(digest(req.get("X-API-KEY") ?? ""), expected)) next();
    else next(new SandboxError("api-key-wrong", "X-API-KEY is missing or wrong"));
  };
}

function digest(text: string): Buffer {
  return createHash("sha256").update(text).digest();
}
