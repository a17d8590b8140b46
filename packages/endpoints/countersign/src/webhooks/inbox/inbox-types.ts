import type { Awaitable, NoPromise, TransactionMode } from "@countersign/idempotency";
import type { WorkStores } from "@countersign/idempotency/work";
import type { WorkerOptions } from "@countersign/idempotency/work/internal";
import type {
  KnownEventType,
  UnknownWebhookEvent,
  WebhookEvent,
  WebhookEventMap,
} from "../envelope/events.ts";
import type {
  DeadLetterHook,
  EventFailure,
  EventHandler,
  HandlerResult,
  OtherEventType,
  TransactionEventContext,
  WebhookHandler,
} from "../events/webhook-handler-types.ts";

/** What a handler has that runs once, in the transaction in which its event ends. */
export interface InboxEventContext<Tx> extends TransactionEventContext<Tx> {
  /** From 1, this one included. */
  readonly attempt: number;
}

/** What a handler has that acts outside of the database, so at least once. */
export interface AtLeastOnceContext<Tx, Mode extends TransactionMode> {
  readonly webhookId: string;
  /** From 1, this one included. */
  readonly attempt: number;
  /** Aborts after `timeoutMs`, and when another worker may have the event: begin no effect after that. */
  readonly signal: AbortSignal;
  /** Writes in one transaction with the end of the event. At most once. Rejects, and nothing was written, when another worker has it. */
  commit<Result>(
    this: void,
    work: (tx: Tx) => Mode extends "sync" ? Result & NoPromise : Awaitable<Result>,
  ): Promise<Result>;
}

export interface CreateInboxOptions<Tx, Mode extends TransactionMode> extends WorkerOptions {
  /** The app's own database, such as `createStores({ database: fromKysely(db) })` makes it. */
  readonly stores: WorkStores<Tx, Mode>;
  /** For events whose type has no handler: "ignore" acknowledges them; a handler gets them. Required. */
  readonly fallback: "ignore" | EventHandler<WebhookEvent, InboxEventContext<Tx>, HandlerResult<Mode>>;
  /** The queue of this inbox: 1 to 64 of `a-z`, `0-9`, `-`. Default `inbox`. Required where stores have more than one inbox. */
  readonly name?: string | undefined;
  /**
   * Whose event it is: events of one entity are handled one after another, as they came; undefined for no order. Default: the buyer, seller
   * or payment request of the spec's types.
   */
  readonly entityOf?: ((event: WebhookEvent) => string | undefined) | undefined;
  /** Only takes webhooks: other processes work on them. Register the same handlers, whose types say what is taken. Default false. */
  readonly receiveOnly?: boolean | undefined;
  /** Called for every failed attempt, not awaited. Default: a notice, or a line on stderr without subscribers. */
  readonly onError?: ((failure: EventFailure) => unknown) | undefined;
  /** Called when an event is given up, not awaited; a malformed one is at once. The event stays a dead letter, whatever the hook does. */
  readonly onDeadLetter?: DeadLetterHook | undefined;
}

/** Takes webhooks with a commit, and works on their events afterwards. Made by `createInbox`. */
export interface Inbox<Tx, Mode extends TransactionMode> extends WebhookHandler<
  InboxEventContext<Tx>,
  HandlerResult<Mode>
> {
  /** Sets the handler of a type of the spec that acts outside of the database: after a crash it runs again. Throws a TypeError as on(). */
  onAtLeastOnce<Type extends KnownEventType>(
    type: Type,
    handler: EventHandler<WebhookEventMap[Type], AtLeastOnceContext<Tx, Mode>>,
  ): this;
  /** The same for a type that the spec does not name. Throws a TypeError as onOther(). */
  onOtherAtLeastOnce<Type extends string>(
    type: OtherEventType<Type>,
    handler: EventHandler<UnknownWebhookEvent, AtLeastOnceContext<Tx, Mode>>,
  ): this;
  /** Begins to work on events; the first webhook does it too. Nothing with `receiveOnly`. Ends registration. */
  start(): void;
}
