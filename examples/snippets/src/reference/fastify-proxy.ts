import { fastify, type FastifyRequest } from "fastify";

export const app = fastify({ trustProxy: ["10.0.0.5"] }); // the proxies' addresses, never true

export const connection = {
  clientAddress: (request: FastifyRequest) => request.ip,
  scheme: (request: FastifyRequest) => request.protocol,
};
