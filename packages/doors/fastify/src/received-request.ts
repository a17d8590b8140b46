import {
  createRequestFact,
  option,
  receivedRequests,
  shareFacts,
  type OptionTable,
  type ReceivedRequest,
  type RequestFact,
} from "@countersign/core";
import { receivedRequest as nodeRequest } from "@countersign/express";
import type { FastifyRequest } from "fastify";

/**
 * What is known of the connection behind a proxy. Fastify's own `trustProxy` is not read: what it trusts cannot be told from a
 * request, and one that trusts everybody lets the caller choose.
 */
export interface ConnectionOptions {
  /** The client's address, for example `(request) => request.ip` where `trustProxy` lists your proxies. Default: the peer of the socket. */
  readonly clientAddress?: ((request: FastifyRequest) => string | undefined) | undefined;
  /** How the client reached the server, for example `(request) => request.protocol`. Default: whether the socket is TLS. */
  readonly scheme?: ((request: FastifyRequest) => "http" | "https") | undefined;
}

/** What the rules of {@link ConnectionOptions} read. */
export interface ReadConnection {
  readonly clientAddress: ConnectionOptions["clientAddress"];
  readonly scheme: ConnectionOptions["scheme"];
}

export const connectionTable: OptionTable<ConnectionOptions, ReadConnection> = {
  clientAddress: option.optional(option.call(), "the peer of the socket"),
  scheme: option.optional(option.call(), "whether the socket is TLS"),
};

const received: RequestFact<ReceivedRequest> = createRequestFact();

/** The request as checks know it; the same one each time. */
export function receivedRequest(request: FastifyRequest, options: ConnectionOptions = {}): ReceivedRequest {
  const known = received.get(request);
  if (known !== undefined) return known;
  const node = nodeRequest(request.raw);
  const made: ReceivedRequest = {
    method: node.method,
    target: node.target,
    rawHeaders: node.rawHeaders,
    get scheme() {
      return options.scheme === undefined ? node.scheme : options.scheme(request);
    },
    get clientAddress() {
      return options.clientAddress === undefined ? node.clientAddress : options.clientAddress(request);
    },
    body: (limitBytes) => node.body(limitBytes),
  };
  shareFacts(request.raw, request);
  shareFacts(request.raw, made);
  received.set(request, made);
  receivedRequests.set(request, made);
  return made;
}
