import {
  createRequestFact,
  GuardError,
  isGuardError,
  type ReceivedRequest,
  type RequestFact,
} from "@countersign/core";
import {
  appAnswers,
  createWarnOnce,
  option,
  receivedRequests,
  shareFacts,
  type OptionTable,
} from "@countersign/core/internal";
import { receivedRequest as nodeRequest } from "@countersign/express";
import { proxyTrust, type TrustFunction } from "@countersign/express/internal";
import type { FastifyInstance, FastifyRequest } from "fastify";
import { internal } from "./hidden-route.ts";

/** How to read the connection behind a proxy. `trustProxy` is not read: requests do not show it, and `true` lets callers choose. */
export interface ConnectionOptions {
  /** The client's address, such as `(request) => request.ip` where `trustProxy` lists your proxies. Default: the socket's peer. */
  readonly clientAddress?: ((request: FastifyRequest) => string | undefined) | undefined;
  /** How the client reached the server, such as `(request) => request.protocol`. Default: whether the socket is TLS. */
  readonly scheme?: ((request: FastifyRequest) => "http" | "https") | undefined;
}

export const connectionTable: OptionTable<ConnectionOptions, ConnectionOptions> = {
  clientAddress: option.shown(option.optional(option.call(), "the peer of the socket"), isGiven),
  scheme: option.shown(option.optional(option.call(), "whether the socket is TLS"), isGiven),
};

function isGiven(call: unknown): boolean {
  return call !== undefined;
}

/** Warns when the plugin asks a Fastify that believes everything callers say of themselves. */
export function warnOfTrust(
  fastify: FastifyInstance,
  factoryName: string,
  connection: ConnectionOptions,
): void {
  const asks = connection.clientAddress !== undefined || connection.scheme !== undefined;
  if (!asks || !proxyTrust.trustsEverybody(trustOf(fastify))) return;
  const message =
    "trustProxy trusts every address, so the caller chooses request.ip and request.protocol by writing X-Forwarded-For and " +
    'X-Forwarded-Proto; list the addresses of your proxies instead, for example trustProxy: ["10.0.0.5"]';
  createWarnOnce(factoryName)({ code: "trust-proxy-unsafe", message });
}

/** Fastify shows no trust function: asks requests of its own class, which no client sent. */
function trustOf(fastify: FastifyInstance): TrustFunction {
  const { prototype = null }: { readonly prototype?: object | null } = Object(
    internal(fastify, "fastify.Request"),
  );
  return (address, hop) => {
    const forwarded = Array.from({ length: hop + 1 }, () => address).join(", ");
    const raw = { headers: { "x-forwarded-for": forwarded }, socket: { remoteAddress: address } };
    // Up to the first that is not trusted, which it includes.
    const { ips }: { readonly ips?: unknown } = Object.create(prototype, { raw: { value: raw } });
    return Array.isArray(ips) && ips.length > hop + 1;
  };
}

const received: RequestFact<ReceivedRequest> = createRequestFact();

/** The request as checks know it, always the same one. */
export function receivedRequest(request: FastifyRequest, options: ConnectionOptions = {}): ReceivedRequest {
  const known = received.get(request);
  if (known !== undefined) return known;
  const node = nodeRequest(request.raw);
  const made: ReceivedRequest = {
    method: node.method,
    target: node.target,
    rawHeaders: node.rawHeaders,
    get scheme() {
      return options.scheme === undefined ? node.scheme : atOnce("scheme", options.scheme(request));
    },
    get clientAddress() {
      return options.clientAddress === undefined
        ? node.clientAddress
        : atOnce("clientAddress", options.clientAddress(request));
    },
    body: (limitBytes) => bodyOf(node, limitBytes),
  };
  shareFacts(request.raw, request);
  shareFacts(request.raw, made);
  received.set(request, made);
  receivedRequests.set(request, made);
  return made;
}

/** Node's body; where Fastify's parser was earlier, the refusal says what to write in Fastify. */
async function bodyOf(node: ReceivedRequest, limitBytes: number): Promise<Uint8Array> {
  try {
    return await node.body(limitBytes);
  } catch (error) {
    if (!isGuardError(error) || error.code !== "body-already-consumed") throw error;
    const message =
      "Fastify's parser has read the body before this check: give the check's hook() to the route as onRequest or preParsing, in place " +
      "of preValidation, preHandler or the handler";
    throw new GuardError({ status: error.status, code: error.code, message, cause: error });
  }
}

function atOnce<T>(name: string, answer: T): T {
  if (appAnswers.isVainPromise(answer))
    throw new TypeError(`option ${name} must return its answer, not a promise`);
  return answer;
}
