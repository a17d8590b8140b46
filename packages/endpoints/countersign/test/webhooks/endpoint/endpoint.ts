import type { GuardRequest } from "@countersign/express";
import { memoryIdempotencyStore } from "@countersign/idempotency";
import { signPayload } from "@countersign/webhook-hmac";
import {
  createWebhookHandler,
  webhookEndpoint,
  type CreateWebhookHandlerOptions,
  type WebhookEvent,
  type WebhookHandler,
} from "countersign/webhooks";
import type { ErrorRequestHandler, Express, RequestHandler } from "express";
import express4 from "express4";
import { expressVersionsWith, type ExpressFactory } from "@countersign/test-support/runs/express-versions.ts";
import { withOverrides, type Overrides } from "@countersign/test-support/runs/sections.ts";

type WebhookEndpointOptions = Parameters<typeof webhookEndpoint>[0];

export const expressVersions = expressVersionsWith(express4);

export const path = "/hooks/3f9c2a7be1d04c55a1b2c3d4e5f60718";
export const credentials: readonly { readonly username: string; readonly password: string }[] = [
  { username: "service", password: "test-password" },
];
export const secret = "test-secret";

/** The only answer that an endpoint of its own gives: `exchange` blanks the date. */
export const success =
  "HTTP/1.1 200 OK\r\nX-Powered-By: Express\r\nDate: -\r\nConnection: close\r\nContent-Length: 0\r\n\r\n";

export function envelope(...eventIds: readonly string[]): string {
  const timestamp = "2024-01-02T03:04:05.123456789Z";
  const events = eventIds.map((event_id) => ({
    event_id,
    timestamp,
    type: "buyer.status_changed",
    data: { buyer_id: "buyer_1", old_status: "PENDING", new_status: "ACTIVE" },
  }));
  return JSON.stringify({ webhook_id: "wh_1", timestamp, events });
}

/** A handler that calls `work` for each event, in a store that is new. */
export function handlerOf(
  work: (event: WebhookEvent) => unknown = () => undefined,
  options: Partial<CreateWebhookHandlerOptions> = {},
): WebhookHandler {
  const store = memoryIdempotencyStore({ max: 10_000, retentionMs: 72 * 3_600_000 });
  return createWebhookHandler({ store, fallback: work, onError: () => undefined, ...options });
}

export function optionsWith(overrides: Overrides<WebhookEndpointOptions> = {}): WebhookEndpointOptions {
  const usual: WebhookEndpointOptions = {
    basicAuth: { credentials },
    hmac: { secrets: [secret], limit: "1kb" },
    https: { dangerouslyAllowHttp: true },
    handler: handlerOf(),
  };
  return withOverrides(usual, overrides);
}

export interface Site {
  readonly factory: ExpressFactory;
  readonly before?: RequestHandler | undefined;
  readonly notFound?: RequestHandler | undefined;
}

/** An app with the endpoint, or, for comparison, without. */
export function siteOf({ factory, before, notFound }: Site, options?: WebhookEndpointOptions): Express {
  const app = factory();
  app.set("env", "test");
  if (before !== undefined) app.use(before);
  app.get("/", (_req, res) => {
    res.send("home");
  });
  if (options !== undefined) app.use(path, webhookEndpoint(options));
  if (notFound !== undefined) app.use(notFound);
  return app;
}

export function rejections(): { readonly codes: unknown[]; readonly onReject: (error: unknown) => void } {
  const codes: unknown[] = [];
  const onReject = (error: unknown, _req?: GuardRequest): void => {
    const { code, type } = error as { code?: unknown; type?: unknown };
    codes.push(code ?? type ?? error);
  };
  return { codes, onReject };
}

export const jsonNotFound: RequestHandler = (req, res) => {
  if (res.statusCode === 200) res.status(404);
  res.json({ error: "nothing here", path: req.originalUrl, url: req.url });
};

/** An app's own answer to errors, which must not show for a hidden endpoint. */
export const appErrors: ErrorRequestHandler = (_error, _req, res, _next) => {
  res.status(500).json({ app: true });
};

/** What differs from a genuine delivery. A header of undefined is left out, an array is several lines. */
export interface WebhookChanges {
  readonly method?: string | undefined;
  readonly path?: string | undefined;
  readonly body?: string | Uint8Array | undefined;
  readonly headers?: Readonly<Record<string, string | readonly string[] | undefined>> | undefined;
  /** Send the body in one chunk, without Content-Length. */
  readonly chunked?: boolean | undefined;
  readonly keepAlive?: boolean | undefined;
}

export function delivery(changes: WebhookChanges = {}): Buffer {
  const body = Buffer.from(changes.body ?? envelope("ev_1"));
  const headers = {
    Host: "platform.example",
    Connection: changes.keepAlive === true ? undefined : "close",
    Authorization: basic("service", "test-password"),
    "Content-Type": "application/json",
    "X-Payload-Signature": signPayload(body, secret),
    ...(changes.chunked === true
      ? { "Transfer-Encoding": "chunked" }
      : { "Content-Length": String(body.length) }),
    ...changes.headers,
  };
  const lines = Object.entries(headers).flatMap(([name, value]) =>
    value === undefined ? [] : [value].flat().map((line) => `${name}: ${line}`),
  );
  const head = [`${changes.method ?? "POST"} ${changes.path ?? path} HTTP/1.1`, ...lines, "", ""].join(
    "\r\n",
  );
  if (changes.chunked !== true) return Buffer.concat([Buffer.from(head), body]);
  const chunk = `${body.length.toString(16)}\r\n`;
  return Buffer.concat([Buffer.from(head + chunk), body, Buffer.from("\r\n0\r\n\r\n")]);
}

export function basic(username: string, password: string): string {
  return `Basic ${Buffer.from(`${username}:${password}`).toString("base64")}`;
}
