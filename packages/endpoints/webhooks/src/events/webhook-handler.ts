import { eventTrace, quoteForLog } from "@countersign/core";
import { assertFunction, Deadlines, publishNotice } from "@countersign/core/door";
import type { DrainOptions, DrainReport } from "@countersign/idempotency";
import { knownEventTypes } from "../envelope/envelope.ts";
import type {
  KnownEventType,
  UnknownWebhookEvent,
  WebhookEnvelope,
  WebhookEventMap,
} from "../envelope/events.ts";
import { dispatchEvents } from "./event-dispatch.ts";
import type { EventState, RoutedHandler } from "./failed-event.ts";
import { claimEvent, claimTraced } from "./owned-event.ts";
import {
  factoryName,
  resolveWebhookHandlerOptions,
  type ResolvedWebhookHandlerOptions,
} from "./webhook-handler-options.ts";
import type {
  CreateWebhookHandlerOptions,
  EventHandler,
  OtherEventType,
  WebhookHandler,
  WebhookOutcome,
} from "./webhook-handler-types.ts";

/**
 * Handles each event once, whatever the order and grouping of deliveries: claims its `event_id` in the store, runs it, and records it as
 * done or gives it back. An event whose owner fell silent runs again. Throws a TypeError on a bad option.
 */
export function createWebhookHandler(options: CreateWebhookHandlerOptions): WebhookHandler {
  return new RoutingHandler(resolveWebhookHandlerOptions(options));
}

/** An event is dispatched (event-dispatch.ts), claimed and owned (owned-event.ts), then done or failed (failed-event.ts). */
class RoutingHandler implements WebhookHandler {
  readonly #handlers = new Map<string, readonly RoutedHandler[]>();
  #any: RoutedHandler | undefined;
  #others: readonly RoutedHandler[];
  #sealed = false;
  readonly #concurrency: number;
  readonly #state: EventState;

  constructor(options: ResolvedWebhookHandlerOptions) {
    const { keys, keyPrefix, fallback, concurrency, timeoutMs, deadLetters, onError } = options;
    this.#others = fallback === "ignore" ? [] : [fallback];
    this.#concurrency = concurrency;
    this.#state = {
      keys,
      keyPrefix,
      deadLetters,
      onError,
      handlersOf: (type) => this.#handlers.get(type) ?? this.#others,
      onIgnored: ignoredTypes(),
      deadlines: new Deadlines(timeoutMs, { keepsAlive: false }),
    };
  }

  on<Type extends KnownEventType>(type: Type, handler: EventHandler<WebhookEventMap[Type]>): this {
    // The events of a misspelt type would be acknowledged without a handler.
    if (!knownEventTypes.includes(type)) {
      const known = knownEventTypes.join(", ");
      const quoted = JSON.stringify(type);
      const what = `${quoted} is no known type; the known types are ${known}. For another one, write onOther(${quoted}, ...)`;
      throw new TypeError(`${factoryName}: on: ${what}`);
    }
    return this.#add("on", type, handler);
  }

  onOther<Type extends string>(type: OtherEventType<Type>, handler: EventHandler<UnknownWebhookEvent>): this {
    if (typeof type !== "string" || type === "") {
      throw new TypeError(`${factoryName}: onOther: the type must be a string that is not empty`);
    }
    if (knownEventTypes.includes(type)) {
      const quoted = JSON.stringify(type);
      throw new TypeError(`${factoryName}: onOther: ${quoted} is a known type; write on(${quoted}, ...)`);
    }
    return this.#add("onOther", type, handler);
  }

  onAny(handler: EventHandler): this {
    assertFunction(factoryName, "onAny", handler);
    this.#assertOpen("onAny");
    if (this.#any !== undefined) throw new TypeError(`${factoryName}: onAny: there is one already`);
    this.#any = handler;
    return this;
  }

  handle(envelope: WebhookEnvelope): Promise<WebhookOutcome> {
    this.#seal();
    return dispatchEvents(envelope, this.#concurrency, (delivery) =>
      eventTrace.hasSubscribers ? claimTraced(this.#state, delivery) : claimEvent(this.#state, delivery),
    );
  }

  readonly drain = (options?: DrainOptions): Promise<DrainReport> => this.#state.keys.drain(options);

  #add(method: string, type: string, handler: RoutedHandler): this {
    const quoted = JSON.stringify(type);
    assertFunction(factoryName, `${method}(${quoted})`, handler);
    this.#assertOpen(method);
    if (this.#handlers.has(type)) {
      throw new TypeError(`${factoryName}: ${method}: the type ${quoted} has a handler already`);
    }
    this.#handlers.set(type, [handler]);
    return this;
  }

  #assertOpen(method: string): void {
    if (!this.#sealed) return;
    throw new TypeError(
      `${factoryName}: ${method}: register every handler before the first webhook is handled`,
    );
  }

  /** Ends registration: the handlers of an event must not depend on when it comes. */
  #seal(): void {
    if (this.#sealed) return;
    this.#sealed = true;
    const any = this.#any;
    if (any === undefined) return;
    for (const [type, handlers] of this.#handlers) this.#handlers.set(type, [any, ...handlers]);
    this.#others = [any, ...this.#others];
  }
}

// Senders choose the types: without a bound they would fill the memory.
const maxNoticed = 1_000;

/** Publishes one notice for each type whose events are acknowledged without a handler. */
function ignoredTypes(): (type: string) => void {
  const noticed = new Set<string>();
  return (type) => {
    if (noticed.has(type) || noticed.size >= maxNoticed) return;
    const isHeard = publishNotice({
      guard: factoryName,
      code: "event-type-ignored",
      message: `events of the type ${quoteForLog(type)} have no handler: they are acknowledged, and nothing else`,
    });
    // Later subscribers get it too.
    if (isHeard) noticed.add(type);
  };
}
