import { OptionError } from "@countersign/core";
import type { TransactionMode } from "@countersign/idempotency";
import type { KnownEventType, WebhookEnvelope } from "../envelope/events.ts";
import { RoutingHandler } from "../events/event-routes.ts";
import type { RoutedHandler } from "../events/failed-event.ts";
import type { OtherEventType, WebhookOutcome } from "../events/webhook-handler-types.ts";
import { factoryName, resolveInboxOptions, type ResolvedInboxOptions } from "./inbox-options.ts";
import { InboxReception } from "./inbox-reception.ts";
import type { CreateInboxOptions, Inbox } from "./inbox-types.ts";

/**
 * Commits the events of verified webhooks, so that they are acknowledged, and works on them afterwards: each again until it is done or a
 * dead letter, those of one entity in their order. Throws an OptionError on a bad option.
 */
export function createInbox<Tx, Mode extends TransactionMode>(
  options: CreateInboxOptions<Tx, Mode>,
): Inbox<Tx, Mode>;
export function createInbox(options: object): Inbox<never, never> {
  return new InboxHandler(resolveInboxOptions(options));
}

class InboxHandler extends RoutingHandler<InboxReception> implements Inbox<never, never> {
  #hasAny = false;

  constructor(options: ResolvedInboxOptions) {
    super(
      { factory: factoryName, fallback: options.fallback },
      (routes) => new InboxReception(options, routes),
    );
  }

  override onAny(handler: RoutedHandler): this {
    if (this.receiving.outside.size > 0) throw besideAny("onAny");
    this.#hasAny = true;
    return super.onAny(handler);
  }

  onAtLeastOnce(type: KnownEventType, handler: RoutedHandler, options?: unknown): this {
    this.assertKnown("onAtLeastOnce", type);
    return this.#addOutside("onAtLeastOnce", { type, handler, options });
  }

  onOtherAtLeastOnce<Type extends string>(
    type: OtherEventType<Type>,
    handler: RoutedHandler,
    options?: unknown,
  ): this {
    this.assertOther("onOtherAtLeastOnce", type);
    return this.#addOutside("onOtherAtLeastOnce", { type, handler, options });
  }

  override async handle(envelope: WebhookEnvelope): Promise<WebhookOutcome> {
    if (this.hasHandlers) return await super.handle(envelope);
    // Above all with receiveOnly: every event would be acknowledged, and none kept.
    throw new TypeError(
      `${factoryName}: no handlers: register them here too, since their types say what is taken`,
    );
  }

  start(): void {
    this.seal();
    this.receiving.start();
  }

  #addOutside(
    method: string,
    { type, handler, options }: { type: string; handler: RoutedHandler; options: unknown },
  ): this {
    if (options !== undefined) {
      const what =
        "takes no options: the newest time commits with a handler's writes, and this handler acts before them; " +
        "compare timestamps where it acts";
      throw new OptionError(factoryName, { option: `${method}(${JSON.stringify(type)})`, what });
    }
    if (this.#hasAny) throw besideAny(method);
    this.add({ method, type, isOutside: true }, handler);
    this.receiving.outside.set(type, handler);
    return this;
  }
}

function besideAny(method: string): TypeError {
  const why = "onAny() writes in the transaction of each event, before handlers that act outside have acted";
  return new TypeError(`${factoryName}: ${method}: onAny() and onAtLeastOnce() exclude each other: ${why}`);
}
