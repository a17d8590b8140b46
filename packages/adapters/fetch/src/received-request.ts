import { GuardError, type ReceivedRequest } from "@countersign/core";
import {
  assertReadableBody,
  assertWholeHead,
  bodyRefusals,
  fieldLines,
  receivedRequests,
  recordRawBody,
  shareFacts,
  untilNotCutLate,
  type BodyCode,
} from "@countersign/core/internal";
import { readCapped } from "./body.ts";
import { offerBody } from "./later-body.ts";

/** The connection, which a `Request` does not show. Assumes nothing: checks refuse without a member they need. */
export interface ConnectionInfo {
  /** The client's address by the platform or trusted proxies alone. Without it an allowlist refuses. */
  readonly clientAddress?: string | undefined;
  /**
   * How the client reached the server. Default: the scheme of `request.url`, but `http` with `rawHeaders` or `target`: servers on Node
   * take the URL's scheme from the request line, which the caller writes.
   */
  readonly scheme?: "http" | "https" | undefined;
  /** Header names and values alternating; 431 when Node may have dropped some. Default: the merged lines of `request.headers`. */
  readonly rawHeaders?: readonly string[] | undefined;
  /** The target as on the wire. Default: what follows the authority in `request.url`, which every `Request` has normalised. */
  readonly target?: string | undefined;
}

/**
 * The request as checks know it, always the same one. `Headers` merges a field's lines: a second Authorization, Content-Type or
 * X-Payload-Signature makes a value that no check takes.
 */
export function receivedRequest(request: Request, info: ConnectionInfo = {}): ReceivedRequest {
  assertRequest(request);
  const known = receivedRequests.get(request);
  if (known !== undefined) return known;
  const rawHeaders = info.rawHeaders ?? [...request.headers].flat();
  // `Headers` is no parser that drops lines.
  assertWholeHead({ rawHeaders }, info.rawHeaders === undefined ? Infinity : undefined);
  let bytes: Promise<Buffer> | undefined;
  const made: ReceivedRequest = {
    method: request.method,
    target: info.target ?? targetOf(request.url),
    rawHeaders,
    scheme: info.scheme ?? schemeOf(request.url, info),
    clientAddress: info.clientAddress,
    body: (limitBytes) => (bytes ??= readBody(request, made, limitBytes)),
  };
  shareFacts(request, made);
  receivedRequests.set(request, made);
  return made;
}

// @hono/node-server takes the absolute form, scheme included, for the URL: `POST https://…` over plain TCP is no HTTPS.
function schemeOf(url: string, { rawHeaders, target }: ConnectionInfo): "http" | "https" {
  const isBehindNode = rawHeaders !== undefined || target !== undefined;
  return !isBehindNode && url.startsWith("https:") ? "https" : "http";
}

// A framework's context resembles a Request: its body would be taken for one that was cut.
function assertRequest(request: unknown): asserts request is Request {
  if (typeof request === "object" && request !== null && "bodyUsed" in request && "headers" in request)
    return;
  throw new TypeError("the first argument has to be the Request itself, of Hono c.req.raw");
}

// URL parts cannot show an empty query or fragment.
function targetOf(url: string): string {
  return /^https?:\/\/[^/?#]*(.*)$/.exec(url)?.[1] ?? url;
}

async function readBody(request: Request, lines: ReceivedRequest, limitBytes: number): Promise<Buffer> {
  if (request.bodyUsed || request.body?.locked === true) throw bodyAlreadyConsumed();
  const { rawHeaders } = lines;
  const lengthBytes = assertReadableBody(lines, limitBytes);
  const { body } = request;
  let bytes: Buffer | undefined;
  try {
    bytes = await readCapped(body, limitBytes);
  } catch (error) {
    throw bodyRefusals.of("request-aborted", error);
  }
  if (bytes === undefined) throw bodyRefusals.tooLarge(limitBytes);
  if (body && isEndedByStream(rawHeaders)) await assertNotCut(request);
  if (lengthBytes !== undefined && bytes.length !== lengthBytes)
    throw bodyRefusals.of("body-length-mismatch");
  if (bytes.length > 0) offerBody(request, lines, bytes);
  return recordRawBody(request, bytes);
}

/** Over HTTP/2 a cut body ends for its reader like a whole one: only the signal tells, perhaps late. */
async function assertNotCut({ signal }: Request): Promise<void> {
  await untilNotCutLate(() => signal.aborted);
  if (signal.aborted) throw bodyRefusals.of("request-aborted", signal.reason);
}

/** True if no field says where the body ends; in HTTP/1.1 one does. */
function isEndedByStream(rawHeaders: readonly string[]): boolean {
  const lines = { rawHeaders };
  return fieldLines(lines, "content-length").length + fieldLines(lines, "transfer-encoding").length === 0;
}

function bodyAlreadyConsumed(): GuardError<BodyCode> {
  return new GuardError<BodyCode>({
    status: 500,
    code: "body-already-consumed",
    message:
      "the body of the Request was read before the check that needs its bytes; hand the Request over unread",
  });
}
