import { parseJsonBody, readOptions } from "@countersign/core/internal";
import { guard, receivedRequest, type Middleware } from "@countersign/express";
import { readBody } from "./check.ts";
import { jsonTable, table, type JsonBodyOptions, type RawBodyOptions } from "./options.ts";

export { captureRawBody } from "@countersign/express";

/**
 * Captures the exact body into `req.rawBody`, once for all later guards. Mount it before any body parser. Refuses a content coding (415)
 * and a body over the limit (413); leaves an aborted upload without an answer.
 */
export function rawBody(options: RawBodyOptions = {}): Middleware {
  const { limit: limitBytes } = readOptions("rawBody", table, options);
  return guard("rawBody", async (req) => {
    await readBody(receivedRequest(req), limitBytes);
  });
}

/**
 * Parses the captured bytes into `req.body`, so that the app uses what was verified. Replaces `express.json()` after rawBody() or a
 * signature guard. Refuses another media type (415) and JSON that two parsers could read differently (400).
 */
export function jsonBody(options: JsonBodyOptions = {}): Middleware {
  const { maxDepth } = readOptions("jsonBody", jsonTable, options);
  return guard("jsonBody", (req) => {
    req.body = parseJsonBody(req, maxDepth).value;
  });
}
