import { eventTrace, quoteForLog } from "@countersign/core";
import { assertFunction, Deadlines, publishNotice } from "@countersign/core/door";
import type { DrainOptions, DrainReport } from "@countersign/idempotency";
import { knownEventTypes } from "../envelope/envelope-schema.ts";
import type {
  KnownEventType,
  UnknownWebhookEvent,
  WebhookEnvelope,
  WebhookEventMap,
} from "../envelope/events.ts";
import { claimEvent, claimTraced, type EventState, type RoutedHandler } from "./owned-event.ts";
import { dispatchEvents } from "./event-dispatch.ts";
import { FailureCounts } from "./failed-event.ts";
import { nearest } from "./near-text.ts";
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
 * Handles each event once, however often, in whatever order and grouping the service delivers it: claimed by its `event_id`
 * in the store, run, and recorded as done, or given back for the next delivery. An event whose owner fell silent is run
 * again. Throws a TypeError on a bad option.
 */
export function createWebhookHandler(options: CreateWebhookHandlerOptions): WebhookHandler {
  return new RoutingHandler(resolveWebhookHandlerOptions(options));
}

/**
 * An event is dispatched (event-dispatch.ts), claimed and owned while its handlers work (owned-event.ts), and done
 * or failed (failed-event.ts).
 */
class RoutingHandler implements WebhookHandler {
  readonly #routes: EventRoutes;
  readonly #concurrency: number;
  readonly #state: EventState;

  constructor(options: ResolvedWebhookHandlerOptions) {
    const { keys, keyPrefix, fallback, concurrency, timeoutMs, deadLetters, onError } = options;
    this.#routes = new EventRoutes(fallback);
    const ignored = new IgnoredTypes();
    this.#concurrency = concurrency;
    this.#state = {
      keys,
      keyPrefix,
      onError,
      handlersOf: (type) => this.#routes.find(type),
      onIgnored: (type) => ignored.notice(type),
      deadlines: new Deadlines(timeoutMs, { keepsAlive: false }),
      deadLetters: deadLetters && {
        ...deadLetters,
        failures: new FailureCounts(keys, deadLetters.maxAttempts),
      },
    };
  }

  on<Type extends KnownEventType>(type: Type, handler: EventHandler<WebhookEventMap[Type]>): this {
    this.#routes.on(type, handler);
    return this;
  }

  onOther<Type extends string>(type: OtherEventType<Type>, handler: EventHandler<UnknownWebhookEvent>): this {
    this.#routes.onOther(type, handler);
    return this;
  }

  onAny(handler: EventHandler): this {
    this.#routes.onAny(handler);
    return this;
  }

  handle(envelope: WebhookEnvelope): Promise<WebhookOutcome> {
    this.#routes.seal();
    return dispatchEvents(envelope, this.#concurrency, (delivery) =>
      eventTrace.hasSubscribers ? claimTraced(this.#state, delivery) : claimEvent(this.#state, delivery),
    );
  }

  readonly drain = (options?: DrainOptions): Promise<DrainReport> => this.#state.keys.drain(options);
}

/** Which handlers an event gets, in their order. */
class EventRoutes {
  readonly #handlers = new Map<string, readonly RoutedHandler[]>();
  #any: RoutedHandler | undefined;
  #others: readonly RoutedHandler[];
  #sealed = false;

  constructor(fallback: "ignore" | EventHandler) {
    this.#others = fallback === "ignore" ? [] : [fallback];
  }

  on(type: string, handler: RoutedHandler): void {
    assertType("on", type);
    if (!knownEventTypes.includes(type)) throw unknownType(type);
    this.#add("on", type, handler);
  }

  onOther(type: string, handler: RoutedHandler): void {
    assertType("onOther", type);
    if (knownEventTypes.includes(type)) {
      const quoted = JSON.stringify(type);
      throw new TypeError(`${factoryName}: onOther: ${quoted} is a known type; write on(${quoted}, ...)`);
    }
    this.#add("onOther", type, handler);
  }

  onAny(handler: RoutedHandler): void {
    assertFunction(factoryName, "onAny", handler);
    this.#assertOpen("onAny");
    if (this.#any !== undefined) throw new TypeError(`${factoryName}: onAny: there is one already`);
    this.#any = handler;
  }

  /** No registration from here on: which handlers an event gets must not depend on when it comes. */
  seal(): void {
    if (this.#sealed) return;
    this.#sealed = true;
    const any = this.#any;
    if (any === undefined) return;
    for (const [type, handlers] of this.#handlers) this.#handlers.set(type, [any, ...handlers]);
    this.#others = [any, ...this.#others];
  }

  /** Empty for an event that is ignored. */
  find(type: string): readonly RoutedHandler[] {
    return this.#handlers.get(type) ?? this.#others;
  }

  #add(method: string, type: string, handler: RoutedHandler): void {
    assertFunction(factoryName, `${method}(${JSON.stringify(type)})`, handler);
    this.#assertOpen(method);
    if (this.#handlers.has(type)) {
      throw new TypeError(
        `${factoryName}: ${method}: the type ${JSON.stringify(type)} has a handler already`,
      );
    }
    this.#handlers.set(type, [handler]);
  }

  #assertOpen(method: string): void {
    if (!this.#sealed) return;
    throw new TypeError(
      `${factoryName}: ${method}: register every handler before the first webhook is handled`,
    );
  }
}

function assertType(method: string, type: unknown): void {
  if (typeof type === "string" && type !== "") return;
  throw new TypeError(`${factoryName}: ${method}: the type must be a string that is not empty`);
}

// A misspelt type would never come, and the events of the right one would be acknowledged without a handler.
function unknownType(type: string): TypeError {
  const quoted = JSON.stringify(type);
  const near = nearest(type, knownEventTypes);
  const meant =
    near === undefined
      ? `the known types are ${knownEventTypes.join(", ")}.`
      : `did you mean ${JSON.stringify(near)}?`;
  return new TypeError(
    `${factoryName}: on: ${quoted} is no known type; ${meant} For a type that is not known here, write onOther(${quoted}, ...)`,
  );
}

// Whoever may send events chooses their types: without a bound they would fill the memory.
const maxNoticed = 1_000;

/** Says once of each type that its events are acknowledged without a handler. */
class IgnoredTypes {
  readonly #noticed = new Set<string>();

  notice(type: string): void {
    if (this.#noticed.has(type) || this.#noticed.size >= maxNoticed) return;
    const isHeard = publishNotice({
      guard: factoryName,
      code: "event-type-ignored",
      message: `events of the type ${quoteForLog(type)} have no handler: they are acknowledged, and nothing else`,
    });
    // Whoever subscribes later has to hear of it as well.
    if (isHeard) this.#noticed.add(type);
  }
}
