import {
  assertKnownOptions,
  createRequestFact,
  GuardError,
  guard,
  integerOption,
  type GuardRequest,
  type Middleware,
  type RequestFact,
} from "@countersign/guard";
import { capturedRawBody } from "./captured.ts";
import { fieldLines } from "./field-lines.ts";
import { parseJsonBytes, type ParsedJson } from "./json-text.ts";
import { isJsonMediaType } from "./media-type.ts";

/** Options of {@link jsonBody}. */
export interface JsonBodyOptions {
  /** How many objects and arrays may be nested, 1 to 512. Default 64. */
  readonly maxDepth?: number | undefined;
}

const parsedBodies: RequestFact<ParsedJson> = createRequestFact();

/**
 * Parses the captured bytes into `req.body`, so that what was verified is what is used. Takes the place of `express.json()`
 * behind rawBody() or a signature guard. Refuses another media type (415) and JSON that two readers could read differently (400).
 */
export function jsonBody(options: JsonBodyOptions = {}): Middleware {
  assertKnownOptions("jsonBody", options, ["maxDepth"]);
  const maxDepth = integerOption("jsonBody", "maxDepth", options.maxDepth, {
    min: 1,
    max: 512,
    fallback: 64,
  });
  return guard("jsonBody", (req) => {
    if (!isJsonMediaType(fieldLines(req, "content-type"))) throw mediaTypeUnsupported();
    const parsed = parseJsonBytes(requiredRawBody(req), maxDepth);
    parsedBodies.set(req, parsed);
    req.body = parsed.value;
  });
}

/** What jsonBody() read from the request; undefined where it did not run. */
export function parsedJson(req: GuardRequest): ParsedJson | undefined {
  return parsedBodies.get(req);
}

function requiredRawBody(req: GuardRequest): Buffer {
  const bytes = capturedRawBody(req);
  if (bytes !== undefined) return bytes;
  throw new GuardError({
    status: 500,
    code: "raw-body-missing",
    message: "jsonBody() found no captured bytes: mount rawBody() or the signature guard before it",
  });
}

function mediaTypeUnsupported(): GuardError {
  return new GuardError({
    status: 415,
    code: "media-type-unsupported",
    message: "the body needs exactly one Content-Type, application/json, in UTF-8",
  });
}
