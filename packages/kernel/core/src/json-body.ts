import type { JsonBodyCode } from "./codes.ts";
import { GuardError } from "./guard-error.ts";
import { capturedRawBody, fieldLines, isJsonMediaType, type HeaderLines } from "./received-request.ts";
import { createRequestFact, type RequestFact } from "./request-fact.ts";
import { parseJsonBytes, type ParsedJson } from "./wire-text.ts";

export const defaultMaxDepth = 64;

const parsedBodies: RequestFact<ParsedJson> = createRequestFact();

/** Parses the captured bytes. Throws a GuardError: 415 for another media type, 400 for ambiguous JSON, 500 without captured bytes. */
export function parseJsonBody(request: HeaderLines, maxDepth: number = defaultMaxDepth): ParsedJson {
  if (!isJsonMediaType(fieldLines(request, "content-type"))) {
    throw new GuardError<JsonBodyCode>({
      status: 415,
      code: "media-type-unsupported",
      message:
        "the body needs exactly one Content-Type, application/json, in UTF-8; to take another media type, mount its parser after " +
        "the check, such as express.urlencoded() or express.raw(), or read req.rawBody",
    });
  }
  const bytes = capturedRawBody(request);
  if (bytes === undefined) {
    throw new GuardError<JsonBodyCode>({
      status: 500,
      code: "raw-body-missing",
      message: "jsonBody() found no captured bytes: mount rawBody() or the signature guard before it",
    });
  }
  const parsed = parseJsonBytes(bytes, maxDepth);
  parsedBodies.set(request, parsed);
  return parsed;
}

/** The result of {@link parseJsonBody}; undefined where it did not run. */
export function parsedJson(subject: object): ParsedJson | undefined {
  return parsedBodies.get(subject);
}

/** True if any Content-Type line names JSON, in whatever form: then no parser but the strict one may decide what the body says. */
export function claimsJson(request: HeaderLines): boolean {
  return fieldLines(request, "content-type").some((line) => /json/i.test(line));
}

/**
 * For adapters whose framework parses by itself after the checks: throws as {@link parseJsonBody} does if the captured body claims to be
 * JSON. Of JSON that passes, a lax parser makes the same value.
 */
export function assertStrictJson(request: HeaderLines): void {
  const bytes = capturedRawBody(request);
  if (bytes === undefined || bytes.length === 0 || !claimsJson(request)) return;
  if (parsedJson(request) === undefined) parseJsonBody(request);
}
