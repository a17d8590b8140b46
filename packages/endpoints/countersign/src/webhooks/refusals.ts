import { GuardError } from "@countersign/core";
import type { HeaderFields } from "@countersign/core/internal";

/** The codes of the refusals of webhooks, and of the failures of their events. */
export type WebhookCode =
  | "attempts-exhausted"
  | "data-invalid"
  | "envelope-invalid"
  | "event-id-reused"
  | "event-timed-out"
  | "events-busy"
  | "events-failed"
  | "events-too-many"
  | "https-required"
  | "media-type-unsupported"
  | "method-not-allowed"
  | "payload-not-verified"
  | "timestamp-invalid";

const refusals: Readonly<Record<WebhookCode, readonly [number, string, HeaderFields?]>> = {
  "attempts-exhausted": [500, "the event has failed too often"],
  "data-invalid": [400, "the event breaks the schema of its type"],
  "envelope-invalid": [400, "the webhook breaks the schema"],
  // To acknowledge it as handled would lose it.
  "event-id-reused": [400, "the event has the id of one that is done and has another type"],
  "event-timed-out": [503, "the event's handler did not end in time"],
  "events-busy": [503, "events of the webhook run elsewhere", { "Retry-After": "5" }],
  "events-failed": [503, "events of the webhook are not done", { "Retry-After": "5" }],
  "events-too-many": [413, "the webhook has too many events"],
  "https-required": [
    403,
    "the request did not come over HTTPS: its socket is not TLS, and no trusted proxy says https in one X-Forwarded-Proto line",
  ],
  "media-type-unsupported": [415, "a webhook needs exactly one Content-Type, application/json, in UTF-8"],
  // RFC 9110 section 15.5.6.
  "method-not-allowed": [405, "webhooks are sent with POST", { Allow: "POST" }],
  "payload-not-verified": [500, "receiveWebhook() found no verified payload: mount webhookHmac() before it"],
  "timestamp-invalid": [400, "the timestamp is invalid"],
};

/** The GuardError of a code; `own` replaces what the table says of it. */
export function webhookRefusal(
  code: WebhookCode,
  own: { readonly status?: number; readonly message?: string; readonly cause?: unknown } = {},
): GuardError<WebhookCode> {
  const [status, message, headers] = refusals[code];
  return new GuardError<WebhookCode>({ status, message, headers, ...own, code });
}
