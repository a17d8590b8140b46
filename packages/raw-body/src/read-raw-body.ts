import {
  createRequestFact,
  GuardError,
  requestAborted,
  type GuardRequest,
  type RequestFact,
} from "@countersign/guard";
import getRawBody from "raw-body";
import { capturedRawBody, recordRawBody } from "./captured.ts";
import { contentEncodingUnsupported, hasIdentityEncoding } from "./content-encoding.ts";
import { isCut, mayBeCutLate, untilNotCutLate } from "./http2-body.ts";
import { isLimitBytes } from "./options.ts";
import { hasKnownTransferCoding, transferCodingUnsupported } from "./transfer-encoding.ts";

const readsUnderWay: RequestFact<Promise<Buffer>> = createRequestFact();

/**
 * The bytes of the body as received, read at most once for each request: at once when they are captured, else as a promise
 * that all callers share. The first caller's limit counts. Throws or rejects with a GuardError, and with a TypeError when
 * `limitBytes` is no positive integer.
 */
export function readRawBody(req: GuardRequest, limitBytes: number): Buffer | Promise<Buffer> {
  const captured = capturedRawBody(req);
  if (captured !== undefined && !mayBeCutLate(req)) return captured;
  const underWay = readsUnderWay.get(req);
  if (underWay !== undefined) return underWay;
  if (captured !== undefined) return share(req, checkLate(req, captured));
  if (!isLimitBytes(limitBytes)) throw new TypeError("readRawBody: limitBytes must be a positive integer");

  if (isCut(req)) throw aborted();
  if (!hasKnownTransferCoding(req)) throw transferCodingUnsupported();
  if (!hasIdentityEncoding(req)) throw contentEncodingUnsupported();
  const lengthBytes = contentLength(req);
  if (lengthBytes !== undefined && lengthBytes > limitBytes) throw bodyTooLarge(limitBytes);
  if (isConsumed(req)) {
    const kept = adopt(req, lengthBytes, limitBytes);
    return mayBeCutLate(req) ? share(req, checkLate(req, kept)) : kept;
  }

  return share(req, readStream(req, lengthBytes, limitBytes));
}

function share(req: GuardRequest, read: Promise<Buffer>): Promise<Buffer> {
  readsUnderWay.set(req, read);
  return read;
}

/** Bytes that a parser kept, once it is known that they are all. */
async function checkLate(req: GuardRequest, bytes: Buffer): Promise<Buffer> {
  await untilNotCutLate(req);
  if (isCut(req)) throw aborted();
  return bytes;
}

async function readStream(
  req: GuardRequest,
  lengthBytes: number | undefined,
  limitBytes: number,
): Promise<Buffer> {
  try {
    const bytes = await getRawBody(req, { length: lengthBytes ?? null, limit: limitBytes });
    if (mayBeCutLate(req)) await untilNotCutLate(req);
    if (!isCut(req)) return recordRawBody(req, bytes);
  } catch (error) {
    throw isCut(req) ? aborted(error) : refusalOf(error, limitBytes);
  }
  throw aborted();
}

/** Takes the bytes that the platform or `express.raw` kept, when somebody else has read the stream. */
function adopt(req: GuardRequest, lengthBytes: number | undefined, limitBytes: number): Buffer {
  const kept = [req.rawBody, req.body].find((candidate) => Buffer.isBuffer(candidate));
  if (kept === undefined) {
    if (hasNoBody(req)) return recordRawBody(req, Buffer.alloc(0));
    throw bodyAlreadyConsumed();
  }
  if (kept.length > limitBytes) throw bodyTooLarge(limitBytes);
  if (lengthBytes !== undefined && kept.length !== lengthBytes) throw lengthMismatch();
  return recordRawBody(req, kept);
}

/** Reading again would give zero bytes, and a verdict on an empty body. `_body` is the mark of Express 4's parsers. */
function isConsumed(req: GuardRequest & { readonly _body?: unknown }): boolean {
  return req.readableDidRead || req.readableEnded || !req.readable || req._body === true || isDecoding(req);
}

/** After `req.setEncoding` the stream gives text: bytes that are no UTF-8 are lost. */
function isDecoding(req: GuardRequest): boolean {
  return req.readableEncoding !== null;
}

/** RFC 9112 section 6.3: an HTTP/1.1 request with neither field has no content. */
function hasNoBody(req: GuardRequest): boolean {
  const { headers } = req;
  return (
    req.httpVersionMajor === 1 &&
    headers["transfer-encoding"] === undefined &&
    (headers["content-length"] ?? "0") === "0"
  );
}

function contentLength(req: GuardRequest): number | undefined {
  const text = req.headers["content-length"];
  if (text === undefined) return undefined;
  // Node's parser sees to it; a platform's imitation of a request may not.
  if (!/^\d{1,15}$/.test(text)) throw lengthMismatch();
  return Number(text);
}

function refusalOf(error: unknown, limitBytes: number): unknown {
  const type = error instanceof Error && "type" in error ? error.type : undefined;
  if (type === "entity.too.large") return bodyTooLarge(limitBytes);
  if (type === "request.size.invalid") return lengthMismatch();
  // raw-body names what it saw itself; a stream that fails is a connection that broke.
  return aborted(error);
}

function bodyTooLarge(limitBytes: number): GuardError {
  return new GuardError({
    status: 413,
    code: "body-too-large",
    message: `the body is larger than the limit of ${limitBytes} bytes`,
    // The rest of the body stays unread; the connection cannot carry another request.
    headers: { Connection: "close" },
  });
}

function lengthMismatch(): GuardError {
  return new GuardError({
    status: 400,
    code: "body-length-mismatch",
    message: "the body does not have the length that Content-Length gives",
  });
}

function aborted(cause?: unknown): GuardError {
  return new GuardError({
    status: 400,
    code: requestAborted,
    message: "the client closed the connection before the body was complete",
    cause,
  });
}

function bodyAlreadyConsumed(): GuardError {
  return new GuardError({
    status: 500,
    code: "body-already-consumed",
    message:
      "a body parser has read the request before its bytes were captured: mount rawBody() or the guard that needs the bytes " +
      "before express.json() and other parsers, or write express.json({ verify: captureRawBody })",
  });
}
