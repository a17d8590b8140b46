import { setImmediate as turn, setTimeout as delay } from "node:timers/promises";
import type { BodyCode, CoreCode } from "./codes.ts";
import { GuardError, requestAborted, type GuardErrorInit } from "./guard-error.ts";
import { createRequestFact, type RequestFact } from "./request-fact.ts";

/**
 * What a check knows of a request, whatever framework has received it. A door makes one for each native request; a test, a queue or
 * a function without a server writes one as a literal.
 */
export interface ReceivedRequest extends HeaderLines {
  /** As on the wire, in the letter case received. */
  readonly method: string;
  /** The request target as on the wire, before any router stripped or decoded it. */
  readonly target: string;
  /** How the client reached the server: by TLS, or as a trusted proxy says. Throws a GuardError where that is not known. */
  readonly scheme: "http" | "https";
  /** The client's address by trusted proxies alone; undefined where it is not known. */
  readonly clientAddress: string | undefined;
  /**
   * The exact bytes of the body, read once and shared by all who ask: the first caller's limit counts. Rejects with a GuardError
   * (400, 413, 415, 501) for a body that cannot be taken as sent.
   */
  body(limitBytes: number): Promise<Uint8Array>;
}

/**
 * For doors: the request for checks that they have made of a native one. By it a subscriber reads the `req` of an event of any framework.
 */
export const receivedRequests: RequestFact<ReceivedRequest> = createRequestFact();

/** The header lines of a request: names and values alternating, every line, in the order received. */
export interface HeaderLines {
  readonly rawHeaders: readonly string[];
}

/**
 * The values of every line of one header field, in the order received. `name` is in lower case. A joined or de-duplicated view of
 * the headers would keep the first of two Content-Type lines and hide the second.
 */
export function fieldLines({ rawHeaders }: HeaderLines, name: string): readonly string[] {
  const lines: string[] = [];
  for (let index = 0; index + 1 < rawHeaders.length; index += 2) {
    const candidate = rawHeaders[index];
    if (candidate?.length === name.length && candidate.toLowerCase() === name) {
      lines.push(rawHeaders[index + 1] ?? "");
    }
  }
  return lines;
}

// What Node's parser keeps of names and values together where server.maxHeadersCount is not set.
const usualLimit = 2_000;

/**
 * Throws a GuardError (431, `header-lines-dropped`) where there are as many names and values as the server keeps, or more. Where
 * Node does not refuse them itself, it drops what is beyond without a word: enough lines of a caller's own hide the X-Forwarded-For
 * that a proxy puts behind them, or the second Authorization.
 */
export function assertAllHeaderLines({ rawHeaders }: HeaderLines, limit: number = usualLimit): void {
  if (rawHeaders.length < limit) return;
  throw new GuardError<CoreCode>({
    status: 431,
    code: "header-lines-dropped",
    message: "the request has as many header lines as the server keeps, and may have had more",
  });
}

/**
 * Throws a GuardError (400, `host-repeated`) where a request has more than one Host line (RFC 9112 section 3.2), or `Headers` has joined
 * them by a comma. Node's parser lets them pass, and keeps the first: a proxy or a signer may go by another.
 */
export function assertOneHost(request: HeaderLines): void {
  const [host, ...others] = fieldLines(request, "host");
  if (others.length === 0 && host?.includes(",") !== true) return;
  throw new GuardError<CoreCode>({
    status: 400,
    code: "host-repeated",
    message: "the request has more than one Host line",
  });
}

const jsonInUtf8 = /^application\/json(?:[ \t]*;[ \t]*charset=(?:utf-8|"utf-8"))?$/i;

/**
 * Whether the Content-Type lines of a request say JSON in UTF-8: exactly one line, `application/json`, no parameter but
 * `charset=utf-8`. Two values, or another charset, would let two readers of one body disagree.
 */
export function isJsonMediaType(contentTypeLines: readonly string[]): boolean {
  const [contentType] = contentTypeLines;
  return contentTypeLines.length === 1 && contentType !== undefined && jsonInUtf8.test(contentType);
}

const bodies: RequestFact<Buffer> = createRequestFact();

/** The bytes of the body when they have been captured. Never what another middleware wrote to a property of the request since. */
export function capturedRawBody(subject: object): Buffer | undefined {
  return bodies.get(subject);
}

/** For doors: records the bytes for every later check; the first record stays. */
export function recordRawBody(subject: object, bytes: Buffer): Buffer {
  const earlier = bodies.get(subject);
  if (earlier !== undefined) return earlier;
  bodies.set(subject, bytes);
  return bytes;
}

/** Whether `value` is a usable limit; in comparisons NaN would let every length pass. */
export function isLimitBytes(value: unknown): value is number {
  return typeof value === "number" && Number.isSafeInteger(value) && value > 0;
}

/**
 * For doors, before they read: refuses a body whose bytes as sent cannot be had. 501 for a transfer coding other than `chunked`,
 * 415 for a content coding, 413 when Content-Length is over the limit, 400 when it is no length. Returns that length, undefined
 * where there is none.
 */
export function assertReadableBody(request: HeaderLines, limitBytes: number): number | undefined {
  if (!hasKnownTransferCoding(request)) throw bodyRefusal("transfer-coding-unsupported");
  if (!hasIdentityEncoding(request)) throw bodyRefusal("content-encoding-unsupported");
  const lengthBytes = contentLength(request);
  if (lengthBytes !== undefined && lengthBytes > limitBytes) throw bodyTooLarge(limitBytes);
  return lengthBytes;
}

/**
 * Whether the body came without a content coding. A digest is over the bytes as sent (RFC 9530 section 2): what an
 * inflating parser hands over is not what was signed.
 */
function hasIdentityEncoding(request: HeaderLines): boolean {
  return isOnly(fieldLines(request, "content-encoding"), "identity");
}

/**
 * Whether the body came without a transfer coding other than `chunked`, the only one that servers decode. With `gzip, chunked`
 * they hand over what gzip made, which is not the content that a digest or signature is of (RFC 9530 section 2).
 */
function hasKnownTransferCoding(request: HeaderLines): boolean {
  return isOnly(fieldLines(request, "transfer-encoding"), "chunked");
}

/** For doors: whether the bytes of the body are those that were sent, by its header lines. */
export function isSentAsIs(request: HeaderLines): boolean {
  return hasIdentityEncoding(request) && hasKnownTransferCoding(request);
}

function isOnly(lines: readonly string[], coding: string): boolean {
  return lines.length === 0 || (lines.length === 1 && lines[0]?.toLowerCase() === coding);
}

/** The number that Content-Length gives, undefined without one. Servers see to its form; an imitation of a request may not. */
function contentLength(request: HeaderLines): number | undefined {
  const [text, ...others] = fieldLines(request, "content-length");
  if (text === undefined) return undefined;
  if (!/^\d{1,15}$/.test(text) || others.some((other) => other !== text))
    throw bodyRefusal("body-length-mismatch");
  return Number(text);
}

/** Why a body cannot be had, as its refusals say it. */
const bodyRefusals = {
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

/** The refusal of a body with this code. */
export function bodyRefusal(code: keyof typeof bodyRefusals, cause?: unknown): GuardError<BodyCode> {
  return new GuardError<BodyCode>({ ...bodyRefusals[code], code, cause });
}

/** The refusal of a body beyond the limit. */
export function bodyTooLarge(limitBytes: number): GuardError<BodyCode> {
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
 * For doors, after the last byte of a body that only END_STREAM ends (RFC 9113 section 8.1): waits as long as a RST_STREAM takes that was
 * sent right after it, as Node's own HTTP/2 client does when its request is closed half way.
 */
export async function untilNotCutLate(isCut: () => boolean): Promise<void> {
  if (isCut()) return;
  await delay(graceMs);
  // In a busy process the time is over before anything was read: between two turns of the event loop it is.
  await turn();
  await turn();
}

/** The same bytes, without a copy. */
export function asBuffer(bytes: Uint8Array): Buffer {
  return Buffer.isBuffer(bytes) ? bytes : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}
