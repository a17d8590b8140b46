import type Database from "libsql";
import type { WebhookCredentials } from "./credentials.ts";
import type { WebhookAnswer } from "./send-webhook.ts";
import type { TamperedWebhookPart } from "./webhook-request.ts";

/** Something that happened at the service and that every endpoint is told about. */
export interface ServiceEvent {
  /** 1 to 256 characters without control characters. Default a random UUID. */
  readonly event_id?: string | undefined;
  readonly type: string;
  readonly data: Readonly<Record<string, unknown>>;
  /** When it happened, in nanoseconds since 1970. Default now, later than every event before it. */
  readonly epochNanoseconds?: bigint | undefined;
}

/** Where webhooks go, and the credentials that this endpoint, and no other, gets. */
export interface EndpointRegistration extends WebhookCredentials {
  /** https, or http where `allowHttp` lets it; its path and query are sent exactly as given. */
  readonly url: string;
  /** Accept an http URL: `loopback` one of this machine, true any. Default false. */
  readonly allowHttp?: boolean | "loopback" | undefined;
}

/** An endpoint without its credentials. */
export interface RegisteredEndpoint {
  readonly id: string;
  readonly url: string;
}

/** `pending` is tried again later; `failed` was given up when the retry period was over. */
export type DeliveryState = "pending" | "delivered" | "failed";

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

/** How somebody has stopped a delivery. */
export type StopKind = "paused" | "dropped";

/** One request, and when it was sent. */
export interface DeliveryAttempt extends WebhookAnswer {
  readonly at: number;
  /** The part that was spoilt on purpose; such an attempt changes nothing of its delivery. */
  readonly spoilt?: TamperedWebhookPart | undefined;
}

/** Which deliveries are listed. */
export interface DeliveryFilter {
  readonly state?: DeliveryState | undefined;
  /** Deliveries whose webhook holds this event. */
  readonly eventId?: string | undefined;
  /** The newest so many. Default 100. */
  readonly limit?: number | undefined;
  /** Deliveries older than the one with this number. */
  readonly before?: number | undefined;
}

/**
 * How webhooks are formed and sent. Of the times in milliseconds, `timeoutMs` and `stopWaitMs` are real time; the others are
 * divided by the speed of the service. A chance is a number from 0 to 1; true is 1.
 */
export interface DeliveryOptions {
  /** How long events wait for others to share a webhook with. Default 0: the events of one call are one webhook. */
  readonly batchMs?: number | undefined;
  /** Default 100. */
  readonly maxEventsPerWebhook?: number | undefined;
  /** Requests to one endpoint at the same time, so that a slow one does not hold up the others. Default 4. */
  readonly concurrency?: number | undefined;
  /** Delay after the first failure; each further one doubles it, less up to a quarter at random. Default 1 000. */
  readonly initialDelayMs?: number | undefined;
  /** Default 3 600 000. */
  readonly maxDelayMs?: number | undefined;
  /** No attempt is scheduled later than this after the webhook was formed. Default 86 400 000, the day of the spec. */
  readonly retryForMs?: number | undefined;
  /** For one whole request. Default 30 000. */
  readonly timeoutMs?: number | undefined;
  /** How long `stop` waits for requests under way before it cuts them off. Default 5 000. */
  readonly stopWaitMs?: number | undefined;
  /** Chance that a delivered webhook is sent once more, `initialDelayMs` later. Default 0. */
  readonly duplicate?: boolean | number | undefined;
  /** Chance that a webhook is held back for `initialDelayMs` and the next one, never held back, overtakes it. Default 0. */
  readonly reorder?: boolean | number | undefined;
  /** Send every attempt as two requests at once; one 2xx delivers. Default false. */
  readonly twiceAtOnce?: boolean | undefined;
  /** Chance that the first attempt of a delivery loses its connection when the answer begins. Default 0. */
  readonly dropConnection?: boolean | number | undefined;
  /** From 0 up to 1, for chances and jitter. Default Math.random. */
  readonly random?: (() => number) | undefined;
}

/** Calls back once after a delay, unless the function that it returns is called before. */
export type StartTimer = (callback: () => void, delayMs: number) => () => void;

/** What {@link createDeliveryService} is built from. */
export interface DeliveryServiceInit {
  /** Holds endpoints, events, webhooks, deliveries and attempts; the tables are created when missing. */
  readonly database: Database.Database;
  /** Milliseconds since 1970. Default the system's clock. */
  readonly clock?: (() => number) | undefined;
  /** Divides delays and the retry period: at 1440 a day takes a minute. Default 1. */
  readonly speed?: number | undefined;
  /** Issuer certificates in PEM form that https endpoints are checked against. Default those of Node. */
  readonly ca?: string | Buffer | undefined;
  readonly options?: DeliveryOptions | undefined;
  /** Further texts that `control.mask` takes out, beside the credentials of the endpoints: the API key. */
  readonly secrets?: readonly string[] | undefined;
  /** Hears of each delivery after each of its attempts, as it is then. Its throw becomes a process warning. */
  readonly onAttempt?: ((delivery: Delivery) => void) | undefined;
  /** Hears that deliveries were formed, sent or stopped: the numbers of those that have changed, none for new ones. */
  readonly onChange?: ((ids: readonly number[]) => void) | undefined;
  /** What waits for the next due time. Default setTimeout. */
  readonly startTimer?: StartTimer | undefined;
}
