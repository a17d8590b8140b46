import { OptionError, quoteForLog } from "@countersign/core";
import { assertFunction, publishNotice } from "@countersign/core/internal";
import type { DrainOptions, DrainReport } from "@countersign/idempotency";
import { knownEventTypes } from "../envelope/envelope.ts";
import type { KnownEventType, WebhookEnvelope } from "../envelope/events.ts";
import type { Routes } from "./event-batches.ts";
import type { RoutedHandler } from "./failed-event.ts";
import type { OtherEventType, WebhookHandler, WebhookOutcome } from "./webhook-handler-types.ts";

/** How an envelope's events are received, once their handlers are known. */
export interface Receiving extends Pick<WebhookHandler, "handle" | "drain"> {
  /** Throws an OptionError for a handler that cannot run there. */
  readonly assertFit?: (handler: unknown, place: string) => void;
  /** The handler as its options change it. Throws an OptionError for bad ones. */
  readonly withOptions?: (handler: RoutedHandler, registration: Registration) => RoutedHandler;
}

/** One call that sets a type's handler. */
export interface Registration {
  readonly method: string;
  readonly type: string;
  readonly options?: unknown;
  /** Whether the handler acts outside of the transaction. Default false. */
  readonly isOutside?: boolean;
}

export interface RoutingInit {
  readonly factory: string;
  readonly fallback: "ignore" | RoutedHandler;
}

/** Finds each event's handlers; how they run is given. */
export class RoutingHandler<Received extends Receiving = Receiving> implements WebhookHandler<never> {
  readonly #handlers = new Map<string, readonly RoutedHandler[]>();
  #any: RoutedHandler | undefined;
  #others: readonly RoutedHandler[];
  #sealed = false;
  readonly #factory: string;
  protected readonly receiving: Received;

  constructor({ factory, fallback }: RoutingInit, receive: (routes: Routes) => Received) {
    this.#factory = factory;
    this.#others = fallback === "ignore" ? [] : [fallback];
    this.receiving = receive({
      handlersOf: (type) => this.#handlers.get(type) ?? this.#others,
      onIgnored: ignoredTypes(factory),
    });
  }

  on(type: KnownEventType, handler: RoutedHandler, options?: object): this {
    this.assertKnown("on", type);
    return this.add({ method: "on", type, options }, handler);
  }

  onOther<Type extends string>(type: OtherEventType<Type>, handler: RoutedHandler, options?: object): this {
    this.assertOther("onOther", type);
    return this.add({ method: "onOther", type, options }, handler);
  }

  onAny(handler: RoutedHandler): this {
    assertFunction(this.#factory, "onAny", handler);
    this.receiving.assertFit?.(handler, "onAny");
    this.#assertOpen("onAny");
    if (this.#any !== undefined) throw new TypeError(`${this.#factory}: onAny: there is one already`);
    this.#any = handler;
    return this;
  }

  handle(envelope: WebhookEnvelope): Promise<WebhookOutcome> {
    this.seal();
    return this.receiving.handle(envelope);
  }

  readonly drain = (options?: DrainOptions): Promise<DrainReport> => this.receiving.drain(options);

  protected get hasHandlers(): boolean {
    return this.#handlers.size > 0 || this.#others.length > 0 || this.#any !== undefined;
  }

  protected add(registration: Registration, handler: RoutedHandler): this {
    const { method, type, options, isOutside = false } = registration;
    const place = `${method}(${JSON.stringify(type)})`;
    assertFunction(this.#factory, place, handler);
    if (options !== undefined && this.receiving.withOptions === undefined) {
      throw new OptionError(this.#factory, { option: place, what: "takes options only beside stores" });
    }
    if (!isOutside) this.receiving.assertFit?.(handler, place);
    const routed = this.receiving.withOptions?.(handler, registration) ?? handler;
    this.#assertOpen(method);
    if (this.#handlers.has(type)) {
      const quoted = JSON.stringify(type);
      throw new TypeError(`${this.#factory}: ${method}: the type ${quoted} has a handler already`);
    }
    this.#handlers.set(type, [routed]);
    return this;
  }

  /** The events of a misspelt type would be acknowledged without a handler. */
  protected assertKnown(method: string, type: string): void {
    if (knownEventTypes.includes(type)) return;
    const known = knownEventTypes.join(", ");
    const quoted = JSON.stringify(type);
    const what = `${quoted} is no known type; the known types are ${known}. For another one, write ${method.replace("on", "onOther")}(${quoted}, ...)`;
    throw new TypeError(`${this.#factory}: ${method}: ${what}`);
  }

  protected assertOther(method: string, type: unknown): void {
    if (typeof type !== "string" || type === "") {
      throw new TypeError(`${this.#factory}: ${method}: the type must be a string that is not empty`);
    }
    if (knownEventTypes.includes(type)) {
      const quoted = JSON.stringify(type);
      const ofKnown = method.replace("Other", "");
      throw new TypeError(
        `${this.#factory}: ${method}: ${quoted} is a known type; write ${ofKnown}(${quoted}, ...)`,
      );
    }
  }

  #assertOpen(method: string): void {
    if (!this.#sealed) return;
    throw new TypeError(
      `${this.#factory}: ${method}: register every handler before the first webhook is handled`,
    );
  }

  /** Ends registration: the handlers of an event must not depend on when it comes. */
  protected seal(): void {
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
function ignoredTypes(guard: string): (type: string) => void {
  const noticed = new Set<string>();
  return (type) => {
    if (noticed.has(type) || noticed.size >= maxNoticed) return;
    const isHeard = publishNotice({
      guard,
      code: "event-type-ignored",
      message: `events of the type ${quoteForLog(type)} have no handler: they are acknowledged, and nothing else`,
    });
    // Later subscribers get it too.
    if (isHeard) noticed.add(type);
  };
}
