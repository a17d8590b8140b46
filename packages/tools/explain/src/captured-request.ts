import { type ReceivedRequest } from "@countersign/core";
import { capturedRawBody, fieldLines, receivedRequests } from "@countersign/core/door";
import { receivedRequest, type GuardRequest } from "@countersign/express";

/** A request as it was received. */
export interface ExplainedRequest {
  readonly method: string;
  /** The request target as on the wire. */
  readonly target: string;
  /** Names and values by turns, as Node's `req.rawHeaders`. */
  readonly rawHeaders: readonly string[];
  /** The bytes of the body as received. Undefined where nobody has read them; then nothing is said of a body that the fields announce. */
  readonly body?: Uint8Array | undefined;
  /** How the client reached the server. Default `https`. */
  readonly scheme?: "http" | "https" | undefined;
}

/**
 * What a check has known of the request of an event: the member `req` of `countersign:guard`, from the Express, Fastify or fetch door.
 * `body` is undefined where nobody has read it yet. Undefined where no check has looked at a `Request` of fetch, and where nobody can say
 * how the client reached the server. Take it when the event comes: an app may change its request later.
 */
export function capturedRequest(req: object): ExplainedRequest | undefined {
  try {
    const received = receivedRequests.get(req) ?? ofNode(req);
    if (received === undefined) return undefined;
    const { method, target, rawHeaders, scheme } = received;
    return { method, target, rawHeaders: [...rawHeaders], scheme, body: capturedRawBody(received) };
  } catch {
    return undefined;
  }
}

// RFC 9110 section 8.6: a client says `Content-Length: 0` only of methods that could have content.
const methodsWithoutContent = /^(?:GET|HEAD|DELETE|OPTIONS|TRACE)$/;

/**
 * The bytes of a request's body as far as they are known: those that were captured, none where its fields say that there are none, and
 * undefined for a body that nobody has read.
 */
export function knownBody({ method, rawHeaders, body }: ExplainedRequest): Uint8Array | undefined {
  if (body !== undefined) return body;
  const lines = { rawHeaders };
  if (fieldLines(lines, "transfer-encoding").length > 0) return undefined;
  const [length] = fieldLines(lines, "content-length");
  const isEmpty = length === undefined ? methodsWithoutContent.test(method) : length.trim() === "0";
  return isEmpty ? new Uint8Array() : undefined;
}

// Fastify's request has Node's as its member `raw`.
function ofNode(req: object): ReceivedRequest | undefined {
  const node: unknown = "raw" in req ? req.raw : req;
  return isNodeRequest(node) ? receivedRequest(node) : undefined;
}

function isNodeRequest(value: unknown): value is GuardRequest {
  const { rawHeaders, socket }: Readonly<Record<string, unknown>> = Object(value);
  return Array.isArray(rawHeaders) && socket !== undefined;
}
