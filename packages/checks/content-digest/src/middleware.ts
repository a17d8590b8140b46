import { publishFailure, readOptions } from "@countersign/core/internal";
import { createCodingWatch, holdResponse } from "@countersign/express/internal";
import { guard, receivedRequest, type Middleware } from "@countersign/express";
import { answerTable, digestsOf, type AnswerDigestOptions } from "./answer-digests.ts";
import { checkContentDigest } from "./check.ts";
import { table, type ContentDigestOptions } from "./options.ts";

/** Verifies Content-Digest (RFC 9530) over the received body, captured if needed. Refuses with 401 by default. Throws an OptionError. */
export function contentDigest(options: ContentDigestOptions = {}): Middleware {
  const resolved = readOptions("contentDigest", table, options);
  return guard("contentDigest", (req) => checkContentDigest(receivedRequest(req), resolved));
}

/**
 * Adds Content-Digest or Repr-Digest (RFC 9530) to the answers of what is mounted after it. Mount it before whatever changes bodies, such
 * as compression. An answer of over a megabyte gets none. Throws an OptionError on a bad option.
 */
export function digestResponse(options: AnswerDigestOptions = {}): Middleware {
  const factoryName = "digestResponse";
  const resolved = readOptions(factoryName, answerTable, options);
  const watchCoding = createCodingWatch(factoryName);
  const middleware: Middleware = (req, res, next) => {
    const { method, rawHeaders: lines } = receivedRequest(req);
    holdResponse(res, {
      async decide(_status, whole) {
        const { status, rawHeaders, body } = whole();
        // Larger than what is held back.
        if (body === undefined) return undefined;
        const headers = digestsOf({ method, rawHeaders: lines }, { status, rawHeaders, body }, resolved);
        if (Object.keys(headers).length > 0) watchCoding(req, res);
        return { headers };
      },
      unsendable(error) {
        const message = "an answer could not be sent";
        publishFailure({ guard: factoryName, code: "answer-unsendable", message, req, error });
      },
    });
    next();
  };
  return Object.defineProperty(middleware, "name", { value: `${factoryName}Middleware` });
}
