import { createServer, type IncomingHttpHeaders, type RequestListener, type ServerResponse } from "node:http";
import { createServer as createHttpsServer } from "node:https";
import type { AddressInfo } from "node:net";
import {
  createServiceClient,
  ServiceClientError,
  type ServiceClient,
  type WebhookEndpoint,
} from "countersign/client";

type ServiceClientOptions = Parameters<typeof createServiceClient>[0];

interface Received {
  readonly method: string;
  readonly target: string;
  readonly headers: IncomingHttpHeaders;
  readonly rawHeaders: readonly string[];
  readonly body: string;
  readonly at: number;
}

export type Answerer = (res: ServerResponse, request: Received) => void;

/** A service that answers the first request by the first answerer, and so on; the last one stays. */
export interface TestService {
  readonly baseUrl: string;
  readonly received: Received[];
  readonly answer: (...answerers: Answerer[]) => void;
  readonly close: () => Promise<void>;
}

/** Over https when a key and certificate are given. */
export async function startService(tls?: {
  readonly key: string;
  readonly cert: string;
}): Promise<TestService> {
  const received: Received[] = [];
  let answerers: Answerer[] = [json(201, { id: "endpoint-1" })];
  const listener: RequestListener = (req, res) => {
    const chunks: Buffer[] = [];
    req.on("data", (chunk: Buffer) => chunks.push(chunk));
    req.on("end", () => {
      const { method = "", url: target = "", headers, rawHeaders } = req;
      const body = Buffer.concat(chunks).toString("utf8");
      const request = { method, target, headers, rawHeaders, body, at: performance.now() };
      received.push(request);
      const [next, ...rest] = answerers;
      if (rest.length > 0) answerers = rest;
      next?.(res, request);
    });
  };
  const server = tls === undefined ? createServer(listener) : createHttpsServer(tls, listener);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  return {
    baseUrl: `${tls === undefined ? "http" : "https"}://127.0.0.1:${port}`,
    received,
    answer: (...given) => {
      answerers = given;
      received.length = 0;
    },
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

export function json(
  status: number,
  body: unknown,
  headers: Readonly<Record<string, string>> = {},
): Answerer {
  return text(status, JSON.stringify(body), { "content-type": "application/json", ...headers });
}

export function text(
  status: number,
  body: string | Buffer,
  headers: Readonly<Record<string, string>> = {},
): Answerer {
  return (res) => {
    res.writeHead(status, headers).end(body);
  };
}

/** Never answers. */
export const silence: Answerer = () => {};

/** Closes the connection in place of an answer. */
export const hangUp: Answerer = (res) => {
  res.destroy();
};

// TEST VALUES, spelt so that serialisers have something to escape.
export const apiKey = "test-api-key/0123456789";
export const endpoint: WebhookEndpoint = {
  url: "https://platform.example/webhooks/0123456789abcdef?v=1",
  authUsername: "test-user",
  authPassword: 'test-password "ä/+%"',
  signatureSecret: "test-secret/+=\\é",
};

export function clientOf(baseUrl: string, options: Partial<ServiceClientOptions> = {}): ServiceClient {
  return createServiceClient({ baseUrl, apiKey, dangerouslyAllowHttp: true, retryDelayMs: 5, ...options });
}

export async function failureOf(call: Promise<unknown>): Promise<ServiceClientError> {
  try {
    await call;
  } catch (error) {
    if (error instanceof ServiceClientError) return error;
    throw error;
  }
  throw new Error("the call succeeded");
}
