import { createRequestFact, GuardError, type ReceivedRequest, type RequestFact } from "@countersign/core";
import {
  asBuffer,
  capturedRawBody,
  fieldLines,
  isJsonMediaType,
  isLimitBytes,
  parseJsonBytes,
  type BodyCode,
  type HeaderLines,
  type JsonCode,
} from "@countersign/core/door";

export type RawBodyCode = BodyCode | JsonCode | "media-type-unsupported" | "raw-body-missing";

type ParsedJson = ReturnType<typeof parseJsonBytes>;

/**
 * Reads the exact body once for all checks; the first limit counts. Rejects with a GuardError: 415 for a content coding, 501 for a transfer
 * coding, 413 over the limit, 400 for a wrong Content-Length or a client that left (`request-aborted`); a TypeError for a bad limit.
 */
export async function readBody(request: ReceivedRequest, limitBytes: number): Promise<Buffer> {
  if (!isLimitBytes(limitBytes)) throw new TypeError("readBody: limitBytes must be a positive integer");
  return asBuffer(await request.body(limitBytes));
}

export const defaultMaxDepth = 64;

const parsedBodies: RequestFact<ParsedJson> = createRequestFact();

/** Parses the captured bytes. Throws a GuardError: 415 for another media type, 400 for ambiguous JSON, 500 without captured bytes. */
export function parseJsonBody(request: HeaderLines, maxDepth: number = defaultMaxDepth): ParsedJson {
  if (!isJsonMediaType(fieldLines(request, "content-type"))) {
    throw new GuardError<RawBodyCode>({
      status: 415,
      code: "media-type-unsupported",
      message: "the body needs exactly one Content-Type, application/json, in UTF-8",
    });
  }
  const bytes = capturedRawBody(request);
  if (bytes === undefined) {
    throw new GuardError<RawBodyCode>({
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
