import type { WebhookAnswer, WebhookExchange } from "./send-webhook.ts";
import type { TamperedWebhookPart } from "./webhook-request.ts";

export const deliveryStates = ["pending", "delivered", "failed"] as const;

/** `pending` is tried again later; `failed` was given up after the retry period. */
export type DeliveryState = (typeof deliveryStates)[number];

type StopKind = "paused" | "dropped";

export interface Delivery {
  readonly id: number;
  readonly webhookId: string;
  readonly endpointId: string;
  readonly url: string;
  readonly eventIds: readonly string[];
  readonly eventTypes: readonly string[];
  readonly state: DeliveryState;
  /** Milliseconds since 1970, like every time here. */
  readonly createdAt: number;
  /** When it is sent next; undefined when nothing is left to send. */
  readonly nextAttemptAt?: number | undefined;
  /** By hand: `paused` until it is continued or sent again, `dropped` for good. */
  readonly stopped?: StopKind | undefined;
  readonly attempts: readonly DeliveryAttempt[];
}

export interface DeliveryAttempt extends WebhookAnswer {
  readonly at: number;
  /** The part that was spoilt on purpose; such an attempt changes nothing of its delivery. */
  readonly spoilt?: TamperedWebhookPart | undefined;
}

export interface DeliveryFilter {
  readonly state?: DeliveryState | undefined;
  readonly eventId?: string | undefined;
  /** Part of its number with `#`, state, URL, answers or body; three digits are a status. */
  readonly search?: string | undefined;
  /** The newest ones. Default 100. */
  readonly limit?: number | undefined;
  /** Only deliveries with a lower number. */
  readonly before?: number | undefined;
}

export interface StoredDelivery extends Pick<Delivery, "id" | "webhookId" | "endpointId" | "state"> {
  readonly createdMs: number;
  readonly expiresMs: number;
  /** When it is to be sent. */
  readonly dueMs?: number | undefined;
  readonly rounds: number;
  /** With the time at which it would have been sent. */
  readonly stop?: { readonly kind: StopKind; readonly dueMs?: number | undefined } | undefined;
  readonly attempts: readonly (DeliveryAttempt & { readonly exchange?: WebhookExchange | undefined })[];
}
