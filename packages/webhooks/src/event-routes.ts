import { assertFunction } from "@countersign/guard";
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
    if (typeof type !== "string" || type === "") {
      throw new TypeError(`${factory}: on: the type must be a string that is not empty`);
    }
    assertFunction(factory, `on(${JSON.stringify(type)})`, handler);
    this.#assertOpen("on");
    if (this.#handlers.has(type)) {
      throw new TypeError(`${factory}: on: the type ${JSON.stringify(type)} has a handler already`);
    }
    this.#handlers.set(type, [handler]);
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

  #assertOpen(method: string): void {
    if (!this.#sealed) return;
    throw new TypeError(`${factory}: ${method}: register every handler before the first webhook is handled`);
  }
}
