import { assertFunction } from "@countersign/guard";
import { knownEventTypes } from "./envelope-schema.ts";
import { nearest } from "./near-text.ts";
import { factory } from "./webhook-handler-options.ts";
import type { EventHandler } from "./webhook-handler-types.ts";

/** A handler of any event: each is only given what it was registered for. */
export type RoutedHandler = EventHandler<never>;

/** Which handlers an event gets, in their order. */
export class EventRoutes {
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
      throw new TypeError(`${factory}: onOther: ${quoted} is a known type; write on(${quoted}, ...)`);
    }
    this.#add("onOther", type, handler);
  }

  onAny(handler: RoutedHandler): void {
    assertFunction(factory, "onAny", handler);
    this.#assertOpen("onAny");
    if (this.#any !== undefined) throw new TypeError(`${factory}: onAny: there is one already`);
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
    assertFunction(factory, `${method}(${JSON.stringify(type)})`, handler);
    this.#assertOpen(method);
    if (this.#handlers.has(type)) {
      throw new TypeError(`${factory}: ${method}: the type ${JSON.stringify(type)} has a handler already`);
    }
    this.#handlers.set(type, [handler]);
  }

  #assertOpen(method: string): void {
    if (!this.#sealed) return;
    throw new TypeError(`${factory}: ${method}: register every handler before the first webhook is handled`);
  }
}

function assertType(method: string, type: unknown): void {
  if (typeof type === "string" && type !== "") return;
  throw new TypeError(`${factory}: ${method}: the type must be a string that is not empty`);
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
    `${factory}: on: ${quoted} is no known type; ${meant} For a type that is not known here, write onOther(${quoted}, ...)`,
  );
}
