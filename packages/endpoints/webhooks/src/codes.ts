/** The codes of the refusals of webhooks, and of the failures of their events. */
export type WebhookCode =
  | "attempts-exhausted"
  | "data-invalid"
  | "envelope-invalid"
  | "event-id-reused"
  | "event-not-begun"
  | "event-timed-out"
  | "events-busy"
  | "events-failed"
  | "events-too-many"
  | "https-required"
  | "media-type-unsupported"
  | "method-not-allowed"
  | "payload-not-verified"
  | "timestamp-invalid";
