import { afterEach, beforeEach } from "@jest/globals";
import { collectNotices } from "@countersign/test-support/runs/faulty-store.ts";
import { once } from "node:events";
import {
  createServer,
  request,
  type IncomingMessage,
  type RequestListener,
  type Server,
  type ServerResponse,
} from "node:http";
import type { AddressInfo } from "node:net";
import express from "express";
import express4 from "express4";
import { memoryIdempotencyStore } from "@countersign/idempotency";
import {
  idempotencyGuard,
  type DrainableMiddleware,
  type IdempotencyGuardOptions,
} from "@countersign/idempotency-guard";
import { captureRawBody } from "@countersign/raw-body";
import { guardErrors } from "@countersign/express";

export { eventually, sleep } from "@countersign/test-support/runs/eventually.ts";
export { collectNotices, faultyStore, type Fault } from "@countersign/test-support/runs/faulty-store.ts";

export const frameworks = [
  ["express 5", express],
  ["express 4", express4],
] as const;

export type Framework = typeof express;

interface Answer {
  readonly status: number;
  readonly headers: IncomingMessage["headers"];
  readonly body: string;
  readonly code: unknown;
}

export interface Platform {
  readonly server: Server;
  pay(options?: PayOptions): Promise<Answer>;
  /** Sends a request, hangs up once `when` has resolved after it came in, and waits until the server knows. */
  payAndLeave(when: () => Promise<unknown>, options?: PayOptions): Promise<void>;
  close(): Promise<void>;
}

interface PayOptions {
  readonly key?: string;
  readonly body?: string;
  readonly headers?: Record<string, string>;
}

const open: Platform[] = [];

export interface Gate {
  readonly opened: Promise<void>;
  readonly open: () => void;
}

export function gate(): Gate {
  let resolveOpened = (): void => {};
  const opened = new Promise<void>((resolve) => (resolveOpened = resolve));
  return { opened, open: () => resolveOpened() };
}

export async function closePlatforms(): Promise<void> {
  await Promise.all(open.splice(0).map((running) => running.close()));
}

/** Closes the platforms after each test, and hears the notices of that test alone. */
export function eachTest(): { readonly codes: () => string[] } {
  let notices: ReturnType<typeof collectNotices>;
  beforeEach(() => {
    notices = collectNotices();
  });
  afterEach(async () => {
    notices.stop();
    await closePlatforms();
  });
  return { codes: () => notices.codes() };
}

export type Handler = (req: express.Request, res: express.Response, next: express.NextFunction) => unknown;

/** An app with one payout route behind the guard. */
export async function platform(
  framework: Framework,
  options: Partial<IdempotencyGuardOptions>,
  handler: Handler,
): Promise<Platform> {
  const app = framework();
  app.use(bytesOf(framework));
  app.post("/pay", payoutGuard(options), (req, res, next) => void handle(handler, req, res, next));
  app.use(guardErrors());
  app.use(((error, _req, res, _next) => {
    if (!res.headersSent) res.status(500).json({ failed: String(error) });
  }) satisfies express.ErrorRequestHandler);
  return listen(app);
}

// Express 4 does not look at the promise.
async function handle(
  handler: Handler,
  ...[req, res, next]: Parameters<express.RequestHandler>
): Promise<void> {
  try {
    await handler(req, res, next);
  } catch (error) {
    next(error);
  }
}

export function payoutGuard(options: Partial<IdempotencyGuardOptions>): DrainableMiddleware {
  return idempotencyGuard({
    store: memoryIdempotencyStore(),
    key: (req) => req.headers["idempotency-key"],
    pollMs: 20,
    ...options,
  });
}

export function bytesOf(framework: Framework): express.RequestHandler {
  return framework.json({
    type: () => true,
    strict: false,
    verify: captureRawBody,
  });
}

export async function listen(listener: RequestListener): Promise<Platform> {
  const server = createServer(listener);
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  const send = (options: PayOptions) => {
    const req = request({
      port,
      host: "127.0.0.1",
      method: "POST",
      path: "/pay",
      agent: false,
      headers: {
        "content-type": "application/json",
        ...(options.key === "" ? {} : { "idempotency-key": options.key ?? "op.a.b" }),
        ...options.headers,
      },
    });
    req.end(options.body ?? '{"amount":1}');
    return req;
  };
  const running: Platform = {
    server,
    async pay(payOptions = {}) {
      const [res] = (await once(send(payOptions), "response")) as [IncomingMessage];
      let body = "";
      for await (const chunk of res.setEncoding("utf8")) body += String(chunk);
      return { status: res.statusCode ?? 0, headers: res.headers, body, code: codeOf(body) };
    },
    async payAndLeave(when, payOptions = {}) {
      const received = once(server, "request");
      const req = send(payOptions);
      req.on("error", () => {});
      const [, res] = (await received) as [IncomingMessage, ServerResponse];
      const closed = once(res, "close");
      await when();
      req.destroy();
      await closed;
    },
    async close() {
      server.closeAllConnections();
      server.close();
      await once(server, "close");
    },
  };
  open.push(running);
  return running;
}

function codeOf(body: string): unknown {
  try {
    return (JSON.parse(body) as { code?: unknown }).code;
  } catch {
    return undefined;
  }
}
