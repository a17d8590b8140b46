import { isPromiseLike } from "@countersign/guard";
import type { Awaitable, DrainOptions, DrainReport } from "@countersign/idempotency-guard";
import type { EventState } from "./event-attempt.ts";
import { EventDeadlines } from "./event-deadlines.ts";
import { deliveriesOf, outcomeOf, withoutRepeats } from "./event-deliveries.ts";
import { EventFailures } from "./event-failures.ts";
import { EventRoutes } from "./event-routes.ts";
import { EventWork } from "./event-work.ts";
import type { KnownEventType, UnknownWebhookEvent, WebhookEnvelope, WebhookEventMap } from "./events.ts";
import { IgnoredTypes } from "./ignored-types.ts";
import {
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
  return new EventDispatcher(resolveWebhookHandlerOptions(options));
}

class EventDispatcher implements WebhookHandler {
  readonly #state: EventState;
  readonly #concurrency: number;

  constructor(options: ResolvedWebhookHandlerOptions) {
    const { keys, keyPrefix, fallback, concurrency, timeoutMs, deadLetters, onError } = options;
    this.#concurrency = concurrency;
    this.#state = {
      keys,
      keyPrefix,
      onError,
      routes: new EventRoutes(fallback),
      ignored: new IgnoredTypes(),
      deadlines: new EventDeadlines(timeoutMs),
      deadLetters: deadLetters && {
        ...deadLetters,
        failures: new EventFailures(keys, deadLetters.maxAttempts),
      },
    };
  }

  on<Type extends KnownEventType>(type: Type, handler: EventHandler<WebhookEventMap[Type]>): this {
    this.#state.routes.on(type, handler);
    return this;
  }

  onOther<Type extends string>(type: OtherEventType<Type>, handler: EventHandler<UnknownWebhookEvent>): this {
    this.#state.routes.onOther(type, handler);
    return this;
  }

  onAny(handler: EventHandler): this {
    this.#state.routes.onAny(handler);
    return this;
  }

  handle(envelope: WebhookEnvelope): Awaitable<WebhookOutcome> {
    this.#state.routes.seal();
    const deliveries = deliveriesOf(envelope);
    const handled = withoutRepeats(deliveries);
    const work = new EventWork(this.#state, handled);
    const outcome = (): WebhookOutcome => outcomeOf(deliveries, handled, work.outcomes);
    const pending = work.run(this.#concurrency);
    return isPromiseLike(pending) ? afterWork(pending, outcome) : outcome();
  }

  readonly drain = (options?: DrainOptions): Promise<DrainReport> => this.#state.keys.drain(options);
}

async function afterWork(work: Promise<void>, outcome: () => WebhookOutcome): Promise<WebhookOutcome> {
  await work;
  return outcome();
}
