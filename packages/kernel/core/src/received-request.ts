import { setImmediate as turn, setTimeout as delay } from "node:timers/promises";
import type { BodyCode, CoreCode } from "./codes.ts";
import { GuardError, requestAborted, type GuardErrorInit } from "./guard-error.ts";
import { createRequestFact, type RequestFact } from "./request-fact.ts";

/** A request as checks know it, whatever its framework. Adapters make one for each native request; tests or queues write a literal. */
export interface ReceivedRequest extends HeaderLines {
  /** As on the wire, in the letter case received. */
  readonly method: string;
  /** The request target as on the wire, before any router stripped or decoded it. */
  readonly target: string;
  /** How the client reached the server: by TLS, or as a trusted proxy says. Throws a GuardError when unknown. */
  readonly scheme: "http" | "https";
  /** The client's address by trusted proxies alone; undefined when unknown. */
  readonly clientAddress: string | undefined;
  /**
   * The exact bytes of the body, read once and shared: the first caller's limit counts. Rejects with a GuardError (400, 413, 415, 501)
   * for a body whose bytes as sent cannot be had.
   */
  body(limitBytes: number): Promise<Uint8Array>;
}

/** For adapters: a native request's {@link ReceivedRequest}, by which a subscriber reads the `req` of any framework's event. */
export const receivedRequests: RequestFact<ReceivedRequest> = createRequestFact();

/** A request's header lines: names and values alternating, every line, in the order received. */
export interface HeaderLines {
  readonly rawHeaders: readonly string[];
}

/** All values of a field, in the order received; `name` in lower case. A joined view would hide the second of two Content-Type lines. */
export function fieldLines(request: HeaderLines, name: string): readonly string[] {
  const { rawHeaders }: Partial<HeaderLines> = request;
  if (rawHeaders === undefined) {
    const what = "a check got a request without rawHeaders, such as Fastify's own";
    throw new TypeError(`${what}: give it receivedRequest(request) of the adapter`);
  }
  const lines: string[] = [];
  for (let index = 0; index + 1 < rawHeaders.length; index += 2) {
    const candidate = rawHeaders[index];
    if (candidate?.length === name.length && candidate.toLowerCase() === name) {
      lines.push(rawHeaders[index + 1] ?? "");
    }
  }
  return lines;
}

// Names and values together that Node's parser keeps without server.maxHeadersCount.
const usualLimit = 2_000;

/**
 * Throws a GuardError (431, `header-lines-dropped`) at `limit` names and values or more. Where Node does not refuse them, it drops the
 * excess silently: a caller's many lines hide the X-Forwarded-For that a proxy appends, or the second Authorization.
 */
function assertAllHeaderLines({ rawHeaders }: HeaderLines, limit: number = usualLimit): void {
  if (rawHeaders.length < limit) return;
  throw new GuardError<CoreCode>({
    status: 431,
    code: "header-lines-dropped",
    message: "the request has as many header lines as the server keeps, and may have had more",
  });
}

/**
 * Throws a GuardError (400, `host-repeated`) for more than one Host line (RFC 9112 section 3.2). So it does for lines that `Headers`
 * joined by a comma. Node keeps the first: a proxy or a signer may go by another.
 */
function assertOneHost(request: HeaderLines): void {
  const [host, ...others] = fieldLines(request, "host");
  if (others.length === 0 && host?.includes(",") !== true) return;
  throw new GuardError<CoreCode>({
    status: 400,
    code: "host-repeated",
    message: "the request has more than one Host line",
  });
}

/** For adapters: {@link assertAllHeaderLines} by the server's `limit`, and {@link assertOneHost}. */
export function assertWholeHead(request: HeaderLines, limit?: number): void {
  assertAllHeaderLines(request, limit);
  assertOneHost(request);
}

const jsonInUtf8 = /^application\/json(?:[ \t]*;[ \t]*charset=(?:utf-8|"utf-8"))?$/i;

/** True for one `application/json` line, at most with `charset=utf-8`: otherwise two readers could disagree about the body. */
export function isJsonMediaType(contentTypeLines: readonly string[]): boolean {
  const [contentType] = contentTypeLines;
  return contentTypeLines.length === 1 && contentType !== undefined && jsonInUtf8.test(contentType);
}

const bodies: RequestFact<Buffer> = createRequestFact();

/** The captured bytes of the body, if any. Never a property of the request, which every middleware can write. */
export function capturedRawBody(subject: object): Buffer | undefined {
  return bodies.get(subject);
}

/** For adapters: records the bytes for later checks; the first record stays. */
export function recordRawBody(subject: object, bytes: Buffer): Buffer {
  const earlier = bodies.get(subject);
  if (earlier !== undefined) return earlier;
  bodies.set(subject, bytes);
  return bytes;
}

/** False for NaN too, which would let every length pass in comparisons. */
export function isLimitBytes(value: unknown): value is number {
  return typeof value === "number" && Number.isSafeInteger(value) && value > 0;
}

/**
 * For adapters, before reading: refuses a body whose bytes as sent cannot be had. 501 for a transfer coding but `chunked`, 415 for a content
 * coding, 413 for a Content-Length over the limit, 400 for one that is no length. Returns that length, if any.
 */
export function assertReadableBody(request: HeaderLines, limitBytes: number): number | undefined {
  if (!hasKnownTransferCoding(request)) throw bodyRefusal("transfer-coding-unsupported");
  if (!hasIdentityEncoding(request)) throw bodyRefusal("content-encoding-unsupported");
  const lengthBytes = contentLength(request);
  if (lengthBytes !== undefined && lengthBytes > limitBytes) throw bodyTooLarge(limitBytes);
  return lengthBytes;
}

/** Digests cover the bytes as sent (RFC 9530 section 2), which an inflating parser does not hand over. */
function hasIdentityEncoding(request: HeaderLines): boolean {
  return isOnly(fieldLines(request, "content-encoding"), "identity");
}

/** Servers decode only `chunked`: of `gzip, chunked` they hand over gzip's bytes, not the signed content (RFC 9530 section 2). */
function hasKnownTransferCoding(request: HeaderLines): boolean {
  return isOnly(fieldLines(request, "transfer-encoding"), "chunked");
}

/** For adapters: whether the body, by its header lines, arrives as the bytes that were sent. */
export function isSentAsIs(request: HeaderLines): boolean {
  return hasIdentityEncoding(request) && hasKnownTransferCoding(request);
}

function isOnly(lines: readonly string[], coding: string): boolean {
  return lines.length === 0 || (lines.length === 1 && lines[0]?.toLowerCase() === coding);
}

/** Content-Length as a number. Servers check its form; an imitation of a request may not. */
function contentLength(request: HeaderLines): number | undefined {
  const [text, ...others] = fieldLines(request, "content-length");
  if (text === undefined) return undefined;
  if (!/^\d{1,15}$/.test(text) || others.some((other) => other !== text))
    throw bodyRefusal("body-length-mismatch");
  return Number(text);
}

const refusals = {
  "body-length-mismatch": {
    status: 400,
    message: "the body does not have the length that Content-Length gives",
  },
  // RFC 9110 section 15.5.16 asks for the field.
  "content-encoding-unsupported": {
    status: 415,
    message: "the body has a Content-Encoding other than identity; its bytes as sent cannot be checked",
    headers: { "Accept-Encoding": "identity" },
  },
  // Ends without an answer: the client has left.
  [requestAborted]: {
    status: 400,
    message: "the client closed the connection before the body was complete",
  },
  // RFC 9112 section 6.1.
  "transfer-coding-unsupported": {
    status: 501,
    message: "the body has a Transfer-Encoding other than chunked, which is not decoded",
  },
} as const satisfies Partial<Record<BodyCode, Omit<GuardErrorInit, "code">>>;

/** Why a body is not read, or not taken. */
export const bodyRefusals = { of: bodyRefusal, tooLarge: bodyTooLarge };

function bodyRefusal(code: keyof typeof refusals, cause?: unknown): GuardError<BodyCode> {
  return new GuardError<BodyCode>({ ...refusals[code], code, cause });
}

function bodyTooLarge(limitBytes: number): GuardError<BodyCode> {
  return new GuardError<BodyCode>({
    status: 413,
    code: "body-too-large",
    message: `the body is larger than the limit of ${limitBytes} bytes`,
    // The rest of the body stays unread; the connection cannot carry another request.
    headers: { Connection: "close" },
  });
}

const graceMs = 5;

/**
 * For adapters, after the last byte of a body that only END_STREAM ends (RFC 9113 section 8.1): waits long enough for a RST_STREAM sent right
 * after it, as Node's own HTTP/2 client sends when its request is closed half way.
 */
export async function untilNotCutLate(isCut: () => boolean): Promise<void> {
  if (isCut()) return;
  await delay(graceMs);
  // In a busy process the time may pass before anything is read; between two turns of the event loop it is.
  await turn();
  await turn();
}

/** The same bytes, without a copy. */
export function asBuffer(bytes: Uint8Array): Buffer {
  return Buffer.isBuffer(bytes) ? bytes : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}
