import type { DrainOptions, DrainReport, IdempotencyStore } from "@countersign/idempotency";
import type {
  InvalidWebhookEvent,
  KnownEventType,
  UnknownWebhookEvent,
  WebhookEnvelope,
  WebhookEvent,
  WebhookEventMap,
} from "../envelope/events.ts";

/** `Type` itself unless it is a known type. */
export type OtherEventType<Type extends string> = Type extends KnownEventType ? never : Type;

/** Handles one event, which is done when the handler returns or its promise resolves; a throw or rejection repeats it. */
export type EventHandler<Event = WebhookEvent> = (event: Event, context: EventContext) => unknown;

/** What a handler gets besides the event. */
export interface EventContext {
  /** `webhook_id` of the envelope that carried the event this time. */
  readonly webhookId: string;
  /** 1 + the known failures of this event. Counted only with `maxAttempts`; otherwise always 1. */
  readonly attempt: number;
  /** Aborts after `timeoutMs`, and when another attempt may own the event: begin no effect after that. */
  readonly signal: AbortSignal;
  /**
   * Writes `done` for the event inside the handler's own transaction; a promise when the store is asynchronous, to be awaited
   * before COMMIT. Throws, so that the transaction rolls back, when another attempt may own the event. Only in the last handler
   * of the event: onAny() cannot complete an event that another handler is yet to see.
   */
  completeIn(tx: unknown): void | Promise<void>;
  /**
   * Waits for what the handler needs before its first effect, such as a pool's connection. Settles as `pending` does, a rejection
   * as the `cause` of a GuardError `event-not-begun`. An event that still waits when its time is up, or whose wait fails, is
   * `busy`, and no attempt of `maxAttempts`.
   */
  waitFor<T>(pending: PromiseLike<T>): Promise<T>;
}

/**
 * The result for one event. Acknowledged: `done`, `duplicate` (done before, or the same id earlier in the envelope), `ignored`
 * (no handler, with fallback "ignore") and `dead-lettered`. Not acknowledged, so that the service sends it again: `failed` (the
 * handler threw, the event is invalid, or its id is done under another type), `timed-out`, `busy` (it runs elsewhere, or still,
 * or has only waited), `unavailable` (the store did not answer) and `in-doubt` (handled, but `done` is not confirmed).
 */
export type EventOutcome =
  | "done"
  | "duplicate"
  | "ignored"
  | "dead-lettered"
  | "failed"
  | "timed-out"
  | "busy"
  | "unavailable"
  | "in-doubt";

/** The outcome of one entry of the array `events`. */
export interface EventResult {
  readonly event_id: string;
  readonly type: string;
  readonly outcome: EventOutcome;
}

/** The result for an envelope. */
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

/** A failed attempt at an event. */
export type EventFailure = EventDelivery & {
  readonly attempt: number;
  readonly outcome: EventOutcome;
  /** What the handler threw; otherwise a GuardError that says what happened. */
  readonly error: unknown;
};

/** Options of `createWebhookHandler`. */
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
   * The time until a handler that never ends loses its event, in milliseconds: `signal` aborts, completeIn() throws, and
   * `recovery` decides once the lease has ended. At least `timeoutMs`. Default 600,000, or `timeoutMs` where that is longer.
   */
  readonly handlerTimeoutMs?: number | undefined;
  /**
   * For an event whose owner died, or lost it by `handlerTimeoutMs`: `rerun` by the next delivery, or `hold` it `busy` until an
   * operator decides. Default `rerun`.
   */
  readonly recovery?: "hold" | "rerun" | undefined;
  /**
   * Begins the key of each event in the store; 1 to 128 characters. Default `webhook-event:`. Required where a store is given to
   * more than one handler; two that name the same one handle each event once between them.
   */
  readonly keyPrefix?: string | undefined;
  /** The number of failed attempts after which `onDeadLetter` gets the event. Default: never. Needs `onDeadLetter`. */
  readonly maxAttempts?: number | undefined;
  /** Keeps an event that failed `maxAttempts` times. When it returns the event counts as done; a throw repeats it. */
  readonly onDeadLetter?: ((failure: EventFailure) => unknown) | undefined;
  /** Called for every failed attempt, not awaited. Default: a notice, or a line on stderr without subscribers. */
  readonly onError?: ((failure: EventFailure) => unknown) | undefined;
}

/** Handles the events of webhooks, each of them once. Made by `createWebhookHandler`. */
export interface WebhookHandler {
  /**
   * The handler of a type that the spec names. Throws a TypeError for any other, when the type has one already, and after the
   * first envelope.
   */
  on<Type extends KnownEventType>(type: Type, handler: EventHandler<WebhookEventMap[Type]>): this;
  /**
   * The handler of a type that the spec does not name; its data was not checked. Throws a TypeError for a type of `on()`, when
   * the type has one already, and after the first envelope.
   */
  onOther<Type extends string>(type: OtherEventType<Type>, handler: EventHandler<UnknownWebhookEvent>): this;
  /** Sees every event before the handler of its type, which does not run when this one throws. Once, before the first envelope. */
  onAny(handler: EventHandler): this;
  /** Handles each event of an envelope that is not done yet. Neither throws nor rejects over an event. */
  handle(envelope: WebhookEnvelope): Promise<WebhookOutcome>;
  /**
   * For the end of the process, after the server closed: begins no more events (`unavailable`), and waits until those under way
   * are settled and recorded. Resolves to what is left after `timeoutMs` (default 10,000).
   */
  drain(this: void, options?: DrainOptions): Promise<DrainReport>;
}
