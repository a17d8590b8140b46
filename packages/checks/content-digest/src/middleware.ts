import { publishFailure, readOptions } from "@countersign/core/door";
import { copyResponse, createCodingWatch, holdResponse } from "@countersign/express/door";
import { guard, receivedRequest, type Middleware } from "@countersign/express";
import { answerTable, digestsOf, type AnswerDigestOptions } from "./answer-digests.ts";
import { checkContentDigest } from "./check.ts";
import { table, type ContentDigestOptions } from "./options.ts";

/**
 * Verifies Content-Digest (RFC 9530) over the body as received. Captures the body unless that has happened. Refuses with 401 by
 * default. Throws an OptionError on a bad option.
 */
export function contentDigest(options: ContentDigestOptions = {}): Middleware {
  const resolved = readOptions("contentDigest", table, options);
  return guard("contentDigest", (req) => checkContentDigest(receivedRequest(req), resolved));
}

// Up to here an answer is held back until it is whole; a larger one leaves as it comes.
const limitBytes = 1_048_576;

/**
 * Adds Content-Digest or Repr-Digest (RFC 9530) to the answers of what is mounted after it. Digests the bytes as they leave:
 * mount it before whatever changes bodies, such as compression. An answer of over a megabyte leaves without. Throws an
 * OptionError on a bad option.
 */
export function digestResponse(options: AnswerDigestOptions = {}): Middleware {
  const factoryName = "digestResponse";
  const resolved = readOptions(factoryName, answerTable, options);
  const watchCoding = createCodingWatch(factoryName);
  const middleware: Middleware = (req, res, next) => {
    const { method, rawHeaders: lines } = receivedRequest(req);
    holdResponse(res, {
      decide: async () => undefined,
      destroyed() {},
      unsendable(error) {
        const message = "an answer could not be sent";
        publishFailure({ guard: factoryName, code: "answer-unsendable", message, req, error });
      },
    });
    copyResponse(res, {
      limitBytes,
      onEnd({ status, rawHeaders, body }) {
        // A larger answer has left already.
        if (body === undefined || res.headersSent) return;
        const digests = digestsOf({ method, rawHeaders: lines }, { status, rawHeaders, body }, resolved);
        for (const [name, value] of Object.entries(digests)) res.setHeader(name, value);
        if (Object.keys(digests).length > 0) watchCoding(req, res);
      },
    });
    next();
  };
  return Object.defineProperty(middleware, "name", { value: `${factoryName}Middleware` });
}
