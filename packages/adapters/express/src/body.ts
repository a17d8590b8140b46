import { createRequestFact, GuardError, type RequestFact } from "@countersign/core";
import {
  assertReadableBody,
  bodyRefusals,
  capturedRawBody,
  isLimitBytes,
  isSentAsIs,
  recordRawBody,
  untilNotCutLate,
  type BodyCode,
  type HeaderLines,
} from "@countersign/core/internal";
import { markPutBack } from "./later-body.ts";
import { readAndPutBack } from "./reading.ts";
import type { GuardRequest, OverHttp2 } from "./types.ts";

declare global {
  namespace Express {
    interface Request {
      /** The exact bytes of the body, for the app; checks ask `capturedRawBody`. */
      rawBody?: Buffer | undefined;
    }
  }
}

/**
 * Keeps the parser's own buffer, uncopied, on servers that parse every body: `express.json({ verify: captureRawBody })`. Never throws:
 * Express would answer 403 and put the payload on the error. Skips a coded body (the guard answers 415 or 501) and one that was cut.
 */
export function captureRawBody(req: GuardRequest, _res: unknown, buffer: Buffer, _encoding?: string): void {
  if (!Buffer.isBuffer(buffer) || isCut(req)) return;
  if (isSentAsIs(bodyHeaderLines(req))) keepRawBody(req, buffer);
}

function keepRawBody(req: GuardRequest, bytes: Buffer): Buffer {
  const kept = recordRawBody(req, bytes);
  if (kept === bytes) req.rawBody = bytes;
  return kept;
}

const reads: RequestFact<Promise<Buffer>> = createRequestFact();

/**
 * Reads the body's bytes as received, once; all callers share the promise, and the first one's limit counts. Rejects with a
 * GuardError, and with a TypeError when `limitBytes` is no positive integer.
 */
export function readNodeBody(req: GuardRequest, limitBytes: number): Promise<Buffer> {
  const underWay = reads.get(req);
  if (underWay !== undefined) return underWay;
  const read = readOnce(req, limitBytes);
  reads.set(req, read);
  return read;
}

async function readOnce(req: GuardRequest, limitBytes: number): Promise<Buffer> {
  const captured = capturedRawBody(req);
  if (captured !== undefined) return mayBeCutLate(req) ? checkLate(req, captured) : captured;
  if (!isLimitBytes(limitBytes)) throw new TypeError("body: limitBytes must be a positive integer");
  if (isCut(req)) throw bodyRefusals.of("request-aborted");
  const lengthBytes = assertReadableBody(bodyHeaderLines(req), limitBytes);
  if (isConsumed(req)) {
    const kept = adopt(req, lengthBytes, limitBytes);
    return mayBeCutLate(req) ? checkLate(req, kept) : kept;
  }
  try {
    const { bytes, isPutBack } = await readAndPutBack(req, { lengthBytes, limitBytes });
    if (mayBeCutLate(req)) await untilNotCutLate(() => isCut(req));
    if (!isCut(req)) {
      if (isPutBack) markPutBack(req);
      return keepRawBody(req, bytes);
    }
  } catch (error) {
    throw isCut(req) ? bodyRefusals.of("request-aborted", error) : error;
  }
  throw bodyRefusals.of("request-aborted");
}

/** A parser's bytes, once it is known that they are all. */
async function checkLate(req: GuardRequest, bytes: Buffer): Promise<Buffer> {
  await untilNotCutLate(() => isCut(req));
  if (isCut(req)) throw bodyRefusals.of("request-aborted");
  return bytes;
}

/** Takes the bytes that the platform or `express.raw` kept of a consumed stream. */
function adopt(req: GuardRequest, lengthBytes: number | undefined, limitBytes: number): Buffer {
  const kept = [req.rawBody, req.body].find((candidate) => Buffer.isBuffer(candidate));
  if (kept === undefined) {
    if (hasNoBody(req)) return keepRawBody(req, Buffer.alloc(0));
    throw bodyAlreadyConsumed();
  }
  if (kept.length > limitBytes) throw bodyRefusals.tooLarge(limitBytes);
  if (lengthBytes !== undefined && kept.length !== lengthBytes) throw bodyRefusals.of("body-length-mismatch");
  return keepRawBody(req, kept);
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

function bodyAlreadyConsumed(): GuardError<BodyCode> {
  return new GuardError<BodyCode>({
    status: 500,
    code: "body-already-consumed",
    message:
      "a body parser has read the request before its bytes were captured: mount rawBody() or the guard that needs the bytes " +
      "before express.json() and other parsers, or write express.json({ verify: captureRawBody })",
  });
}

/** True if the client left early. HTTP/2's RST_STREAM ends a body like END_STREAM (RFC 9113 section 8.1), without `readableAborted`. */
export function isCut(req: GuardRequest & OverHttp2): boolean {
  return req.readableAborted || (req.httpVersionMajor >= 2 && req.stream?.closed === true);
}

/** True if END_STREAM alone ends the body, and RST_STREAM may follow; a Content-Length would show that something is missing. */
function mayBeCutLate({ httpVersionMajor, stream, headers }: GuardRequest & OverHttp2): boolean {
  return (
    httpVersionMajor >= 2 && stream?.endAfterHeaders === false && headers["content-length"] === undefined
  );
}

/** Serverless platforms fill only `headers`, which every middleware can write: good enough to refuse a coding, and for nothing else. */
function bodyHeaderLines(req: GuardRequest): HeaderLines {
  const { rawHeaders, headers }: { rawHeaders?: readonly string[]; headers?: GuardRequest["headers"] } = req;
  if (rawHeaders !== undefined && rawHeaders.length > 0) return { rawHeaders };
  const lines: string[] = [];
  for (const [name, value] of Object.entries(headers ?? {})) {
    for (const line of [value ?? []].flat()) lines.push(name, line);
  }
  return { rawHeaders: lines };
}
