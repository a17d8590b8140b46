import { createHmac } from "node:crypto";
import { memoryIdempotencyStore, type IdempotencyStore } from "@countersign/idempotency";
import {
  createWebhookHandler,
  type CreateWebhookHandlerOptions,
  type WebhookEvent,
  type WebhookOptions,
} from "countersign/webhooks";
import type { WireRequest } from "../support/servers/http-client.ts";
import type { WebhookScene } from "./scene.ts";
import { withOverrides, type Overrides } from "../support/runs/sections.ts";

export const hookPath = "/hooks/3f9c2a7be1d04c55a1b2c3d4e5f60718";
export const secret = "test-secret";
const timestamp = "2024-01-02T03:04:05.123456789Z";

export const event = {
  event_id: "ev_1",
  timestamp,
  type: "buyer.status_changed",
  data: { buyer_id: "buyer_1", old_status: "PENDING", new_status: "ACTIVE" },
} as const;

/** A webhook with these events; `changes` are members of the envelope. */
export function envelope(events: unknown = [event], changes: Readonly<Record<string, unknown>> = {}): string {
  return JSON.stringify({ webhook_id: "wh_1", timestamp, events, ...changes });
}

export const rightUser = "service:test-password";

export function basic(userAndPassword: string | Buffer): string {
  return `Basic ${Buffer.from(userAndPassword).toString("base64")}`;
}

export function hmac(body: string | Buffer, encoding: "base64" | "base64url" | "hex" = "base64"): string {
  return createHmac("sha256", secret).update(body).digest(encoding);
}

/** A genuine delivery. Each field of `changes` takes the place of the usual line: a list is several, an empty one none. */
export function deliver(
  body: string | Buffer = envelope(),
  changes: Readonly<Record<string, string | readonly string[]>> = {},
  method = "POST",
): WireRequest {
  const fields: Readonly<Record<string, string | readonly string[]>> = {
    Authorization: basic(rightUser),
    "Content-Type": "application/json",
    "X-Payload-Signature": hmac(body),
    ...changes,
  };
  const headers = Object.entries(fields).flatMap(([name, lines]) =>
    [lines].flat().flatMap((line) => [name, line]),
  );
  return { method, path: hookPath, headers, body: Buffer.from(body) };
}

export interface WebhookState {
  readonly options?: Overrides<WebhookOptions<object>>;
  readonly handling?: Pick<CreateWebhookHandlerOptions, "maxAttempts" | "onDeadLetter">;
  readonly work?: (event: WebhookEvent) => unknown;
  readonly storeOf?: (inner: IdempotencyStore) => IdempotencyStore;
  readonly before?: (store: IdempotencyStore, key: string) => unknown;
}

export function webhookScene(hide: boolean, state: WebhookState = {}): () => WebhookScene {
  return () => {
    const { options, handling, work = () => undefined, storeOf = (store) => store, before } = state;
    const inner = memoryIdempotencyStore({ max: 100, retentionMs: 72 * 3_600_000 });
    before?.(inner, "webhook-event:ev_1");
    const store = storeOf(inner);
    const onError = (): void => undefined;
    return {
      kind: "webhook",
      path: hookPath,
      hide,
      options: withOverrides<WebhookOptions<object>>(
        {
          basicAuth: { credentials: [{ username: "service", password: "test-password" }] },
          hmac: { secrets: [secret], limit: "4kb" },
          https: { dangerouslyAllowHttp: true },
          handler: createWebhookHandler({ store, fallback: work, onError, storeTimeoutMs: 50, ...handling }),
        },
        options ?? {},
      ),
      trace: { codes: [], ran: 0 },
    };
  };
}
