import type { Socket } from "node:net";
import {
  assertAllHeaderLines,
  createRequestFact,
  createWarnOnce,
  fieldLines,
  shareFacts,
  type ReceivedRequest,
  type RequestFact,
} from "@countersign/core";
import { readNodeBody } from "./body.ts";
import { createTrustInspector, type TrustFunction } from "./trust-proxy.ts";
import type { GuardRequest, Middleware } from "./types.ts";

const received: RequestFact<ReceivedRequest> = createRequestFact();
const inspectTrust = createTrustInspector(createWarnOnce("receivedRequest"));

/** The request as checks know it; the same one each time. Its facts are those of `req`. */
export function receivedRequest(req: GuardRequest): ReceivedRequest {
  const known = received.get(req);
  if (known !== undefined) return known;
  const request = new NodeRequest(req);
  received.set(req, request);
  return request;
}

/**
 * `scheme` and `clientAddress` go by the app's `trust proxy` setting, and throw a GuardError (500, `trust-proxy-unsafe`) while that
 * trusts everybody: the caller would choose them.
 */
class NodeRequest implements ReceivedRequest {
  readonly #req: GuardRequest;

  constructor(req: GuardRequest) {
    this.#req = req;
    shareFacts(req, this);
  }

  get method(): string {
    return this.#req.method ?? "";
  }

  get target(): string {
    // The router has cut its mount path off req.url.
    return this.#req.originalUrl ?? this.#req.url ?? "";
  }

  get rawHeaders(): readonly string[] {
    return this.#req.rawHeaders;
  }

  get scheme(): "http" | "https" {
    return isHttps(this.#req, inspectTrust(this.#req)) ? "https" : "http";
  }

  get clientAddress(): string | undefined {
    const trust = inspectTrust(this.#req);
    const address = addressOf(this.#req);
    // A trusted one means that Express ran out of addresses: the proxy named no client.
    return trust?.(address, countForwardedFor(this.#req)) === true ? undefined : address;
  }

  body(limitBytes: number): Promise<Buffer> {
    return readNodeBody(this.#req, limitBytes);
  }
}

/** What Express, or the platform, takes for the client's address; the peer of the socket where neither is. */
export function addressOf(req: GuardRequest): string | undefined {
  // On a unix socket Express's address is undefined: falling back to the peer there would change nothing, elsewhere it would
  // undo what the platform has put into req.ip.
  return "ip" in req ? req.ip : req.socket.remoteAddress;
}

/**
 * Whether the client came over HTTPS: a TLS socket, or one X-Forwarded-Proto line that is exactly `https` from a peer that is
 * trusted. req.secure would take the first of "https, http", which is what the caller wrote.
 */
export function isHttps(req: GuardRequest, trust: TrustFunction | undefined): boolean {
  const forwardedProto = fieldLines(req, "x-forwarded-proto");
  if (forwardedProto.length > 0 && trust?.(req.socket.remoteAddress, 0)) {
    return forwardedProto.length === 1 && forwardedProto[0] === "https";
  }
  return "encrypted" in req.socket && req.socket.encrypted === true;
}

/**
 * The number of addresses in X-Forwarded-For, counted as Express counts them: the distance of the last address that its
 * `trust proxy` could reach.
 */
export function countForwardedFor(req: GuardRequest): number {
  const field = req.headers["x-forwarded-for"];
  if (field === undefined) return 0;
  return String(field)
    .split(",")
    .filter((part) => /[^ ]/.test(part)).length;
}

/** {@link assertAllHeaderLines} by the limit of the server that has received the request. */
export function assertReceivedWhole(req: GuardRequest): void {
  const { rawHeaders, socket }: Received = req;
  if (rawHeaders !== undefined)
    assertAllHeaderLines({ rawHeaders }, limitOf(socket?.server?.maxHeadersCount));
}

/** An imitation of a request may lack each of these. */
interface Received {
  readonly rawHeaders?: readonly string[] | undefined;
  readonly socket?: (Socket & { readonly server?: { readonly maxHeadersCount?: unknown } }) | undefined;
}

/** Of names and values together; undefined is Node's own. */
function limitOf(maxHeadersCount: unknown): number | undefined {
  if (typeof maxHeadersCount !== "number") return undefined;
  return maxHeadersCount > 0 ? maxHeadersCount * 2 : Infinity;
}

/** What Express notes about where it is, and the route that matched last. */
interface Routed {
  readonly baseUrl?: string | undefined;
  readonly route?:
    | { readonly path?: unknown; readonly stack?: readonly { readonly handle?: unknown }[] | undefined }
    | undefined;
}

// Without a character that either version of Express reads as part of a pattern.
const literalPath = /^[\w./~-]*$/;

/**
 * Whether the request is for the very path of an endpoint and none below it. `app.use` strips its path and leaves `/`; a route
 * such as `app.post` leaves the path and names it in `req.route`, here compared by letter case and final slash too. A route below
 * a router, or one whose path is a pattern, has to hold `endpoint` itself. Where no router was, under plain node:http, the server
 * has chosen by itself: true. Absolute-form targets are for no path.
 */
export function isMountPath(req: GuardRequest & Routed, endpoint: Middleware): boolean {
  const { url = "/", originalUrl, route } = req;
  if (originalUrl === undefined) return true;
  const path = pathOf(url);
  if (path === "/") return true;
  // A route that matched before and called next() is still in req.route: it must not admit what is below a path of app.use.
  const isRunning = route?.stack?.some(({ handle }) => handle === endpoint) === true;
  if (!isLiteral(route?.path)) return isRunning;
  return path === route?.path && (isRunning || req.baseUrl === "");
}

/** The path of a request target, without its query. */
export function pathOf(target: string): string {
  const query = target.indexOf("?");
  return query === -1 ? target : target.slice(0, query);
}

function isLiteral(path: unknown): boolean {
  return typeof path === "string" && literalPath.test(path);
}
