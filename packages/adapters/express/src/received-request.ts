import { isIP, type Socket } from "node:net";
import { GuardError, type ReceivedRequest } from "@countersign/core";
import {
  assertWholeHead,
  createWarnOnce,
  fieldLines,
  receivedRequests,
  shareFacts,
  type WarnOnce,
} from "@countersign/core/internal";
import { readNodeBody } from "./body.ts";
import type { ExpressCode, GuardRequest, Middleware } from "./types.ts";

const trustOf = createTrustInspector(createWarnOnce("receivedRequest"));

/** The request as checks know it, always the same one. Its facts are those of `req`. */
export function receivedRequest(req: GuardRequest): ReceivedRequest {
  const known = receivedRequests.get(req);
  if (known !== undefined) return known;
  const request = new NodeRequest(req);
  receivedRequests.set(req, request);
  return request;
}

/** `scheme` and `clientAddress` throw (500, `trust-proxy-unsafe`) while `trust proxy` trusts everybody: callers would choose them. */
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
    return isHttps(this.#req, trustOf(this.#req)) ? "https" : "http";
  }

  get clientAddress(): string | undefined {
    const { address, isProxy } = clientOf(this.#req, trustOf(this.#req), (given) => given);
    return isProxy ? undefined : address;
  }

  body(limitBytes: number): Promise<Buffer> {
    return readNodeBody(this.#req, limitBytes);
  }
}

/**
 * The client's address by Express or the platform, else the socket's peer. `isProxy`: a trusted proxy, because Express ran out of
 * addresses: the proxy named no client, or the hop count exceeds the chain and the caller wrote the rest. `readClient` reads req.ip.
 */
function clientOf(
  req: GuardRequest,
  trust: TrustFunction | undefined,
  readClient: (address: string | undefined) => string | undefined,
): { readonly address: string | undefined; readonly isProxy: boolean } {
  // A proxy that is named with a port is read as one, before it can be taken for a client.
  const address = readClient(addressOf(req));
  return { address, isProxy: trust?.(address, countForwardedFor(req)) === true };
}

function addressOf(req: GuardRequest): string | undefined {
  // Undefined on a unix socket. Falling back to the peer's address would undo a platform's own req.ip.
  return "ip" in req ? req.ip : req.socket.remoteAddress;
}

/** True for TLS, or one X-Forwarded-Proto `https` from a trusted peer. req.secure believes the caller's first of "https, http". */
function isHttps(req: GuardRequest, trust: TrustFunction | undefined): boolean {
  const forwardedProto = fieldLines(req, "x-forwarded-proto");
  if (forwardedProto.length > 0 && trust?.(req.socket.remoteAddress, 0)) {
    return forwardedProto.length === 1 && forwardedProto[0] === "https";
  }
  return "encrypted" in req.socket && req.socket.encrypted === true;
}

/** Counts X-Forwarded-For's addresses as Express does: the farthest that `trust proxy` could reach. */
function countForwardedFor(req: GuardRequest): number {
  const field = req.headers["x-forwarded-for"];
  if (field === undefined) return 0;
  return String(field)
    .split(",")
    .filter((part) => /[^ ]/.test(part)).length;
}

/** {@link assertWholeHead} by the server's own limit. */
export function assertReceivedWhole(req: GuardRequest): void {
  const { rawHeaders, socket }: Received = req;
  if (rawHeaders === undefined) return;
  assertWholeHead({ rawHeaders }, limitOf(socket?.server?.maxHeadersCount));
}

/** An imitation of a request may lack any of these. */
interface Received {
  readonly rawHeaders?: readonly string[] | undefined;
  readonly socket?: (Socket & { readonly server?: { readonly maxHeadersCount?: unknown } }) | undefined;
}

/** For names and values together; undefined for Node's own. */
function limitOf(maxHeadersCount: unknown): number | undefined {
  if (typeof maxHeadersCount !== "number") return undefined;
  return maxHeadersCount > 0 ? maxHeadersCount * 2 : Infinity;
}

/** Express's notes on the present path and the route matched last. */
interface Routed {
  readonly baseUrl?: string | undefined;
  readonly route?:
    | { readonly path?: unknown; readonly stack?: readonly { readonly handle?: unknown }[] | undefined }
    | undefined;
}

// Without characters that a version of Express reads as a pattern.
const literalPath = /^[\w./~-]*$/;

/**
 * True for the very path of an endpoint, none below it. `app.use` strips its path and leaves `/`; `app.post` leaves it and names it in
 * `req.route`, compared here by letter case and final slash too. A route below a router, or with a pattern, has to hold `endpoint`.
 * Without a router, under plain node:http, true: the server has chosen. Absolute-form targets are for no path.
 */
export function isMountPath(req: GuardRequest & Routed, endpoint: Middleware): boolean {
  const { url = "/", originalUrl, route } = req;
  if (originalUrl === undefined) return true;
  const path = pathOf(url);
  if (path === "/") return true;
  // req.route may be an earlier match that called next(): it must not admit what is below a path of app.use.
  const isRunning = route?.stack?.some(({ handle }) => handle === endpoint) === true;
  if (!isLiteral(route?.path)) return isRunning;
  return path === route?.path && (isRunning || req.baseUrl === "");
}

export function pathOf(target: string): string {
  const query = target.indexOf("?");
  return query === -1 ? target : target.slice(0, query);
}

function isLiteral(path: unknown): boolean {
  return typeof path === "string" && literalPath.test(path);
}

/** Express's compiled `trust proxy`: whether the address at this distance from the server is a trusted proxy. */
export type TrustFunction = (address: string | undefined, hop: number) => boolean;

/** What Express's `trust proxy` makes of a request. */
export const proxyTrust = { inspector: createTrustInspector, clientOf, isHttps, trustsEverybody };

type TrustKind = "trusts-nobody" | "trusts-proxies" | "trusts-everybody";

/** Farther than any chain of proxies: trust at this distance is trust in the caller's own text. */
const farHop = 32;
// Class E, documentation and discard-only addresses: together in no list of real proxies.
const strangersIPv4 = ["0.0.0.1", "192.0.2.1", "203.0.113.1", "240.0.0.1"];
const strangersIPv6 = ["100::1", "2001:db8::1", "3fff::1"];
const namedRanges = new Set(["loopback", "linklocal", "uniquelocal"]);

/** Reads `trust proxy` of a request's app; see {@link createTrustInspector}. */
type TrustInspector = (req: GuardRequest) => TrustFunction | undefined;

/**
 * Returns a function that gives an app's trust function while it trusts proxies. Throws a GuardError (500, `trust-proxy-unsafe`) while
 * `trust proxy` trusts everybody: the caller then writes X-Forwarded-For and X-Forwarded-Proto. Warns once of that, and of a misleading
 * setting. Examines a setting once, by the identity of its compiled function.
 */
function createTrustInspector(warnOnce: WarnOnce): TrustInspector {
  const kinds = new WeakMap<TrustFunction, TrustKind>();
  const kindOf = (trust: TrustFunction, setting: unknown, req: GuardRequest): TrustKind => {
    const known = kinds.get(trust);
    if (known !== undefined) return known;
    const kind = kindOfTrust(setting, trust);
    kinds.set(trust, kind);
    if (kind === "trusts-proxies" && isMisread(setting)) warnOnce(misreadSetting(req));
    return kind;
  };

  return function inspectTrust(req) {
    const app = expressAppOf(req);
    const trust = app?.get("trust proxy fn");
    if (app === undefined || !isTrustFunction(trust)) return undefined;
    const kind = kindOf(trust, app.get("trust proxy"), req);
    if (kind === "trusts-everybody") throw unsafeTrust(req, warnOnce);
    return kind === "trusts-proxies" ? trust : undefined;
  };
}

interface ExpressApp {
  readonly get: (setting: string) => unknown;
}

function expressAppOf(req: GuardRequest): ExpressApp | undefined {
  const app: unknown = "app" in req ? req.app : undefined;
  return isExpressApp(app) ? app : undefined;
}

function isExpressApp(app: unknown): app is ExpressApp {
  return (
    (typeof app === "function" || typeof app === "object") &&
    app !== null &&
    "get" in app &&
    typeof app.get === "function"
  );
}

function isTrustFunction(value: unknown): value is TrustFunction {
  return typeof value === "function";
}

function kindOfTrust(setting: unknown, trust: TrustFunction): TrustKind {
  // Express compiles false, undefined, 0, NaN, "" and [] to trust in nobody.
  if (!setting || (Array.isArray(setting) && setting.length === 0)) return "trusts-nobody";
  return trustsEverybody(trust) ? "trusts-everybody" : "trusts-proxies";
}

/** True if `trust proxy` trusts strangers farther away than any proxy: callers then choose their address. */
function trustsEverybody(trust: TrustFunction): boolean {
  const trusted = (address: string): boolean => trust(address, farHop);
  return strangersIPv4.every(trusted) || strangersIPv6.every(trusted);
}

function unsafeTrust(req: GuardRequest, warnOnce: WarnOnce): GuardError<ExpressCode> {
  const code = "trust-proxy-unsafe";
  const message =
    "the app's trust proxy setting trusts every address, so the caller chooses its own address and scheme by writing " +
    "X-Forwarded-For and X-Forwarded-Proto; " +
    'list the addresses of your proxies instead, for example app.set("trust proxy", ["10.0.0.5"])';
  warnOnce({ code, message, req });
  return new GuardError<ExpressCode>({ status: 500, code, message });
}

function misreadSetting(req: GuardRequest): Parameters<WarnOnce>[0] {
  return {
    code: "trust-proxy-misread",
    message:
      "the app's trust proxy setting is read otherwise than it looks: a hop count must be a positive integer of type number " +
      '(Express takes the string "2" for the address 0.0.0.2 and trusts no proxy), a list must hold plain IP addresses or CIDR blocks',
    req,
  };
}

function isMisread(setting: unknown): boolean {
  if (typeof setting === "number") return !Number.isInteger(setting) || setting < 1;
  const parts: readonly unknown[] =
    typeof setting === "string" ? setting.split(",") : Array.isArray(setting) ? setting : [];
  return parts.some((part) => {
    const [address = ""] = String(part).trim().split("/");
    return isIP(address) === 0 && !namedRanges.has(address);
  });
}
