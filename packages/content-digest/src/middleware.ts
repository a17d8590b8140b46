import { readOptions } from "@countersign/core";
import { guard, receivedRequest, type Middleware } from "@countersign/express";
import { checkContentDigest } from "./check.ts";
import { table, type ContentDigestOptions } from "./options.ts";

/**
 * Verifies Content-Digest (RFC 9530) over the bytes of the body as received. Captures them itself unless that has happened.
 * Refuses with 401 by default; throws an OptionError when it is built with a bad option.
 */
export function contentDigest(options: ContentDigestOptions = {}): Middleware {
  const resolved = readOptions("contentDigest", table, options);
  return guard("contentDigest", (req) => checkContentDigest(receivedRequest(req), resolved));
}
