import { textOf, type DatabaseRow } from "../sql.ts";
import type { WebhookAnswer } from "./send-webhook.ts";
import type { TamperedWebhookPart } from "./webhook-request.ts";

/** `pending` is tried again later; `failed` was given up when the retry period was over. */
export type DeliveryState = "pending" | "delivered" | "failed";

/** How somebody has stopped a delivery. */
export type StopKind = "paused" | "dropped";

/** One webhook for one endpoint. */
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

/** One request, and when it was sent. */
export interface DeliveryAttempt extends WebhookAnswer {
  readonly at: number;
  /** The part that was spoilt on purpose; such an attempt changes nothing of its delivery. */
  readonly spoilt?: TamperedWebhookPart | undefined;
}

/** All states, in the order of the documentation. */
export const deliveryStates: readonly DeliveryState[] = ["pending", "delivered", "failed"];

/** The column `state` of a row. */
export function deliveryStateOf(row: DatabaseRow): DeliveryState {
  const text = textOf(row, "state");
  const state = deliveryStates.find((known) => known === text);
  if (state === undefined) throw new Error("the database returned an unknown state of a delivery");
  return state;
}

/** The kind of a row of `webhook_stops`; undefined without one. */
export function stopKindOf(text: unknown): StopKind | undefined {
  return text === "paused" || text === "dropped" ? text : undefined;
}
