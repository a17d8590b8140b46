import { fastify, type FastifyRequest } from "fastify";

// The proxies' addresses, never true.
export const app = fastify({ trustProxy: ["10.0.0.5"] });

export const connection = {
  clientAddress: (request: FastifyRequest) => request.ip,
  scheme: (request: FastifyRequest) => request.protocol,
};
