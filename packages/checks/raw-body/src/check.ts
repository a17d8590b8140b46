import { createRequestFact, GuardError, type ReceivedRequest, type RequestFact } from "@countersign/core";
import {
  asBuffer,
  capturedRawBody,
  fieldLines,
  isJsonMediaType,
  isLimitBytes,
  parseJsonBytes,
  type HeaderLines,
} from "@countersign/core/door";
import type { RawBodyCode } from "./codes.ts";

type ParsedJson = ReturnType<typeof parseJsonBytes>;

/**
 * The exact bytes of the body, read once for all checks of the request; the first caller's limit counts. Rejects with a GuardError:
 * 415 for a content coding, 501 for a transfer coding, 413 over the limit, 400 for a wrong Content-Length and, with the code
 * `request-aborted`, for a client that left. Rejects with a TypeError when `limitBytes` is no positive integer.
 */
export async function readBody(request: ReceivedRequest, limitBytes: number): Promise<Buffer> {
  if (!isLimitBytes(limitBytes)) throw new TypeError("readBody: limitBytes must be a positive integer");
  return asBuffer(await request.body(limitBytes));
}

/** How deep JSON may be nested where no option says otherwise. */
export const defaultMaxDepth = 64;

const parsedBodies: RequestFact<ParsedJson> = createRequestFact();

/**
 * Parses the bytes that were captured of a request, and remembers the result for {@link parsedJson}. Throws a GuardError: 415 for
 * another media type, 400 for JSON that two readers could read differently, 500 when no bytes were captured.
 */
export function parseJsonBody(request: HeaderLines, maxDepth: number): ParsedJson {
  if (!isJsonMediaType(fieldLines(request, "content-type"))) throw mediaTypeUnsupported();
  const parsed = parseJsonBytes(requiredRawBody(request), maxDepth);
  parsedBodies.set(request, parsed);
  return parsed;
}

/** What {@link parseJsonBody} read from the request; undefined where it did not run. */
export function parsedJson(subject: object): ParsedJson | undefined {
  return parsedBodies.get(subject);
}

function requiredRawBody(subject: object): Buffer {
  const bytes = capturedRawBody(subject);
  if (bytes !== undefined) return bytes;
  throw new GuardError<RawBodyCode>({
    status: 500,
    code: "raw-body-missing",
    message: "jsonBody() found no captured bytes: mount rawBody() or the signature guard before it",
  });
}

function mediaTypeUnsupported(): GuardError<RawBodyCode> {
  return new GuardError<RawBodyCode>({
    status: 415,
    code: "media-type-unsupported",
    message: "the body needs exactly one Content-Type, application/json, in UTF-8",
  });
}
