import { assertFunction, assertKnownOptions, isPromiseLike, optionError } from "@countersign/guard";
import type { Awaitable } from "@countersign/idempotency-guard";
import { EventRun } from "./event-run.ts";
import type { WebhookEvent } from "./events.ts";
import { LatestQueue, type TurnContext } from "./latest-queue.ts";
import { memoryLatestTimestamps, type LatestTimestamps } from "./latest-timestamps.ts";
import { compareTimestamps, type WebhookTimestamp } from "./timestamp.ts";
import type { EventContext, EventHandler } from "./webhook-handler-types.ts";

/** Options of {@link latestOnly}. */
export interface LatestOnlyOptions<Event extends WebhookEvent = WebhookEvent> {
  /** The identity of what the event is about, for example the buyer's id. */
  readonly key: (event: Event) => string;
  /** Gets what is skipped because it is older than what was handled last; a throw repeats the event. Default: nothing. */
  readonly onStale?: EventHandler<Event> | undefined;
  /** Where the times are kept. Default `memoryLatestTimestamps()`. */
  readonly latest?: LatestTimestamps | undefined;
}

const factory = "latestOnly";

// Two handlers that share their times have to take turns.
const queues = new WeakMap<LatestTimestamps, LatestQueue>();

/**
 * A handler that skips an event strictly older than the last one that was handled for its key: webhooks come out of order. Events
 * of one key are handled one after another within this process. Throws a TypeError on a bad option.
 */
export function latestOnly<Event extends WebhookEvent>(
  options: LatestOnlyOptions<Event>,
  handler: EventHandler<Event>,
): EventHandler<Event> {
  assertKnownOptions(factory, options, ["key", "onStale", "latest"]);
  const { key, onStale = skip, latest = memoryLatestTimestamps() } = options;
  assertFunction(factory, "key", key);
  assertFunction(factory, "onStale", onStale);
  if (typeof latest !== "object" || latest === null) {
    throw optionError(factory, "latest", "an object with get() and set()", latest);
  }
  assertFunction(factory, "latest.get", Reflect.get(latest, "get"));
  assertFunction(factory, "latest.set", Reflect.get(latest, "set"));
  assertFunction(factory, "handler", handler);
  const queue = queues.get(latest) ?? new LatestQueue();
  queues.set(latest, queue);
  const gate = new LatestGate(latest, handler, onStale);
  return (event, context) => {
    const of = checkKey(key(event));
    const turn = turnContext(context);
    return queue.run({ key: of, context: turn, work: () => gate.pass({ key: of, event, context, turn }) });
  };
}

// Not a copy: the signals of a run are made when they are asked for.
function turnContext(context: EventContext): TurnContext {
  if (context instanceof EventRun) return context;
  return { signal: context.signal, waitFor: (pending) => context.waitFor(pending), ownership: undefined };
}

/** One event whose turn has come. */
interface TurnOf<Event> {
  readonly key: string;
  readonly event: Event;
  readonly context: EventContext;
  readonly turn: TurnContext;
}

class LatestGate<Event extends WebhookEvent> {
  readonly #latest: LatestTimestamps;
  readonly #handler: EventHandler<Event>;
  readonly #onStale: EventHandler<Event>;

  constructor(latest: LatestTimestamps, handler: EventHandler<Event>, onStale: EventHandler<Event>) {
    this.#latest = latest;
    this.#handler = handler;
    this.#onStale = onStale;
  }

  pass(one: TurnOf<Event>): Awaitable<unknown> {
    const known = this.#latest.get(one.key);
    return isPromiseLike(known) ? this.#decideLater(known, one) : this.#decide(known, one);
  }

  async #decideLater(
    pending: Promise<WebhookTimestamp | null | undefined>,
    one: TurnOf<Event>,
  ): Promise<unknown> {
    const known = await pending;
    assertTurn(one.turn);
    return this.#decide(known, one);
  }

  #decide(known: WebhookTimestamp | null | undefined, one: TurnOf<Event>): Awaitable<unknown> {
    const { key, event, context } = one;
    if (isKnown(known) && compareTimestamps(event.timestamp, known) < 0) {
      return this.#onStale(event, context);
    }
    const returned = this.#handler(event, context);
    return isPromiseLike(returned)
      ? this.#advanceAfter(returned, one)
      : this.#latest.set(key, event.timestamp);
  }

  async #advanceAfter(handled: PromiseLike<unknown>, { key, event, turn }: TurnOf<Event>): Promise<void> {
    await handled;
    assertTurn(turn);
    await this.#latest.set(key, event.timestamp);
  }
}

// Given up, the turn is another event's: the time of this one would set the newer one's back.
function assertTurn({ ownership }: TurnContext): void {
  if (ownership?.aborted === true) throw ownership.reason;
}

function checkKey(key: unknown): string {
  if (typeof key === "string" && key !== "") return key;
  throw optionError(factory, "key", "a function that returns a string that is not empty", key);
}

function skip(): void {}

function isKnown(timestamp: WebhookTimestamp | null | undefined): timestamp is WebhookTimestamp {
  return timestamp !== undefined && timestamp !== null;
}
