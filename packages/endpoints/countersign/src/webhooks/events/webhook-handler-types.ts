import type {
  DrainOptions,
  DrainReport,
  IdempotencyStore,
  NoPromise,
  TransactionMode,
  TransactionStores,
} from "@countersign/idempotency";
import type { TransactionOptions } from "@countersign/idempotency/internal";
import type {
  InvalidWebhookEvent,
  KnownEventType,
  UnknownWebhookEvent,
  WebhookEnvelope,
  WebhookEvent,
  WebhookEventMap,
} from "../envelope/events.ts";

export type OtherEventType<Type extends string> = Type extends KnownEventType ? never : Type;

/** Handles one event, which is done when the handler returns or its promise resolves; a throw or rejection repeats it. */
export type EventHandler<Event = WebhookEvent, Context = EventContext, Result = unknown> = (
  event: Event,
  context: Context,
) => Result;

/** What a handler has that commits with its event. */
export interface TransactionEventContext<Tx> {
  /** `webhook_id` of the envelope that carried the event this time. */
  readonly webhookId: string;
  /** The open transaction, as the app's own library knows it. Good until the handler returns. */
  readonly tx: Tx;
}

/** What a handler may return: no promise where transactions are synchronous. */
export type HandlerResult<Mode extends TransactionMode> = Mode extends "sync" ? NoPromise : unknown;

/** What `on()` and `onOther()` take beside a handler, where its transaction is ours. */
export interface EventHandlerOptions<Event, Context, Result> {
  /**
   * Skips events that are older than the newest handled one of their type and subject. Its time commits with the handler's writes. Needs
   * stores with a table of work.
   */
  readonly latestOnly?: true | LatestOnlyOptions<Event, Context, Result> | undefined;
}

export interface LatestOnlyOptions<Event, Context, Result> {
  /** Returns the identity of what the event is about. Default: its buyer, seller or payment request; required for other types. */
  readonly subject?: ((event: Event) => string) | undefined;
  /** Gets an event that is skipped, in the same transaction. Default: nothing. */
  onStale?(event: Event, context: Context): Result;
}

export interface EventContext {
  /** `webhook_id` of the envelope that carried the event this time. */
  readonly webhookId: string;
  /** 1 + the known failures of this event. Counted only with `maxAttempts`; otherwise always 1. */
  readonly attempt: number;
  /** Aborts after `timeoutMs`, and when another attempt may own the event: begin no effect after that. */
  readonly signal: AbortSignal;
}

/**
 * Acknowledged: `done`, `accepted` (committed to an inbox), `duplicate` (known before, or earlier in the envelope), `ignored` (no handler,
 * fallback "ignore") and `dead-lettered` (failed too often, or malformed). Sent again: `failed` (the handler threw, or the id is done under
 * another type), `timed-out`, `busy` (runs elsewhere, or still; or waits for the next delivery), `unavailable` (no answer of the store), `in-doubt`
 * (handled, `done` unconfirmed; or failed, and the store did not say whether something of it has committed).
 */
export type EventOutcome =
  | "done"
  | "accepted"
  | "duplicate"
  | "ignored"
  | "dead-lettered"
  | "failed"
  | "timed-out"
  | "busy"
  | "unavailable"
  | "in-doubt";

export interface EventResult {
  readonly event_id: string;
  readonly type: string;
  readonly outcome: EventOutcome;
}

export interface WebhookOutcome {
  /** Whether every event is acknowledged: the answer must not be a 2xx otherwise. True for `events: []`. */
  readonly acknowledged: boolean;
  /** One for each entry of the array on the wire, in its order. */
  readonly events: readonly EventResult[];
}

/** An event of an envelope: either `event` or `invalid` is defined. */
export type EventDelivery =
  | EventDeliveryOf<WebhookEvent, undefined>
  | EventDeliveryOf<undefined, InvalidWebhookEvent>;

interface EventDeliveryOf<Event, Invalid> {
  readonly webhookId: string;
  readonly event_id: string;
  readonly type: string;
  readonly event: Event;
  readonly invalid: Invalid;
}

export type EventFailure = EventDelivery & {
  readonly attempt: number;
  readonly outcome: EventOutcome;
  /** What the handler threw; otherwise a GuardError that says what happened. */
  readonly error: unknown;
};

export type DeadLetterHook = (failure: EventFailure) => unknown;

export interface CreateWebhookHandlerOptions {
  /** Remembers which events are done; shared by every process that receives them. */
  readonly store: IdempotencyStore;
  /** For events whose type has no handler: "ignore" acknowledges them; a handler gets them. Required. */
  readonly fallback: "ignore" | EventHandler;
  /** How long the store must remember an event, in hours: retries run for a day. At least 72, the default. */
  readonly retentionHours?: number | undefined;
  /** The number of events of one envelope that run at a time. Default 1: in the order of the array. */
  readonly concurrency?: number | undefined;
  /** The time until an event is answered with an error although its handler still runs, in milliseconds. Default 10,000. */
  readonly timeoutMs?: number | undefined;
  /** How long a silent owner keeps an event, in milliseconds. A living owner renews it. Default 30,000. */
  readonly leaseMs?: number | undefined;
  /** How long one call of the store may take, in milliseconds; shorter than the lease. Default 2,000. */
  readonly storeTimeoutMs?: number | undefined;
  /**
   * The time until a handler that never ends loses its event, in milliseconds: `signal` aborts, and `recovery` decides once the lease has
   * ended. At least `timeoutMs`. Default 600,000, or `timeoutMs` where that is longer.
   */
  readonly handlerTimeoutMs?: number | undefined;
  /** For an event whose owner died or exceeded `handlerTimeoutMs`: `rerun`, or `hold` it `busy` for an operator. Default `rerun`. */
  readonly recovery?: "hold" | "rerun" | undefined;
  /**
   * Begins the key of each event in the store; 1 to 128 characters. Default `webhook-event:`. Required where a store is given to
   * more than one handler; two that name the same one handle each event once between them.
   */
  readonly keyPrefix?: string | undefined;
  /** The number of failed attempts after which `onDeadLetter` gets the event. Default: never. Needs `onDeadLetter`. */
  readonly maxAttempts?: number | undefined;
  /**
   * Keeps an event that failed `maxAttempts` times, and a malformed one at its first delivery. When it returns the event counts as done; a throw
   * repeats it. Without it a malformed event is acknowledged with an alarm.
   */
  readonly onDeadLetter?: DeadLetterHook | undefined;
  /** Called for every failed attempt, not awaited. Default: a notice, or a line on stderr without subscribers. */
  readonly onError?: ((failure: EventFailure) => unknown) | undefined;
}

/** Options of a handler whose events commit in the app's own transactions. */
export interface TransactionHandlerOptions<Tx, Mode extends TransactionMode>
  extends TransactionOptions, Pick<CreateWebhookHandlerOptions, "retentionHours" | "keyPrefix" | "onError"> {
  /** The app's own database, such as `createStores({ database: fromKysely(db) })` makes it. */
  readonly stores: TransactionStores<Tx, Mode>;
  /**
   * Keeps a malformed event before it is acknowledged, at least once; a throw repeats it, and so does a promise that has not settled within
   * `transactionTimeoutMs`. Default: an alarm says what was dropped.
   */
  readonly onDeadLetter?: DeadLetterHook | undefined;
  /** For events whose type has no handler: "ignore" acknowledges them; a handler gets them. Required. */
  readonly fallback: "ignore" | EventHandler<WebhookEvent, TransactionEventContext<Tx>, HandlerResult<Mode>>;
}

/** Handles the events of webhooks, each of them once. Made by `createWebhookHandler` and `createInbox`. */
export interface WebhookHandler<Context = EventContext, Result = unknown> {
  /** Sets the handler of a type of the spec. Throws a TypeError for another or a second one, and after the first envelope. */
  on<Type extends KnownEventType>(
    type: Type,
    handler: EventHandler<WebhookEventMap[Type], Context, Result>,
    options?: EventHandlerOptions<WebhookEventMap[Type], Context, Result>,
  ): this;
  /** Sets the handler of a type that the spec does not name, its data unchecked. Throws a TypeError as on(), and for a type of on(). */
  onOther<Type extends string>(
    type: OtherEventType<Type>,
    handler: EventHandler<UnknownWebhookEvent, Context, Result>,
    options?: EventHandlerOptions<UnknownWebhookEvent, Context, Result>,
  ): this;
  /** Sees every event before the handler of its type, which does not run when this one throws. Once, before the first envelope. */
  onAny(handler: EventHandler<WebhookEvent, Context, Result>): this;
  /** Handles each event of an envelope that is not done yet. Neither throws nor rejects over an event. */
  handle(envelope: WebhookEnvelope): Promise<WebhookOutcome>;
  /** After the server closed: starts no event, awaits those running. Resolves to what is left after `timeoutMs` (default 10,000). */
  drain(this: void, options?: DrainOptions): Promise<DrainReport>;
}
