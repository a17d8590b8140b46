import { type ReceivedRequest } from "@countersign/core";
import { capturedRawBody, fieldLines, receivedRequests } from "@countersign/core/internal";
import { receivedRequest, type GuardRequest } from "@countersign/express";

export interface ExplainedRequest {
  readonly method: string;
  /** The request target as on the wire. */
  readonly target: string;
  /** Alternating names and values, as Node's `req.rawHeaders`. */
  readonly rawHeaders: readonly string[];
  /** The bytes as received; undefined if nobody has read them: then checks of the body are skipped. */
  readonly body?: Uint8Array | undefined;
  /** How the client reached the server. Default `https`. */
  readonly scheme?: "http" | "https" | undefined;
}

/**
 * Reads the request of a `countersign:guard` event, its member `req`, from any adapter. `body` is undefined if nobody has read it yet. Returns
 * undefined for a fetch `Request` that no check has read, and if the scheme is unknown. Call it during the event.
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

/** The captured bytes; none if the fields say that there are none; undefined if nobody has read them. */
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
