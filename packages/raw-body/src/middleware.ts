import { assertKnownOptions, guard, isPromiseLike, type Middleware } from "@countersign/guard";
import { resolveLimitBytes, type RawBodyOptions } from "./options.ts";
import { readRawBody } from "./read-raw-body.ts";

/**
 * Captures the exact bytes of the body into `req.rawBody`, once for all later guards. To be mounted before any body parser.
 * Refuses a content coding (415), a body over the limit (413), and leaves an aborted upload without an answer.
 */
export function rawBody(options: RawBodyOptions = {}): Middleware {
  assertKnownOptions("rawBody", options, ["limit"]);
  const limitBytes = resolveLimitBytes("rawBody", options.limit);
  return guard("rawBody", (req) => {
    const bytes = readRawBody(req, limitBytes);
    return isPromiseLike(bytes) ? settled(bytes) : undefined;
  });
}

async function settled(bytes: PromiseLike<Buffer>): Promise<void> {
  await bytes;
}
