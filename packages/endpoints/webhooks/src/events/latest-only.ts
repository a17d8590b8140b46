import { once } from "node:events";
import {
  assertFunction,
  option,
  optionError,
  readOptions,
  type OptionOwner,
  type OptionTable,
} from "@countersign/core/door";
import type { Awaitable } from "@countersign/idempotency";
import { LRUCache } from "lru-cache";
import type { WebhookEvent } from "../envelope/events.ts";
import { compareTimestamps, type WebhookTimestamp } from "../envelope/timestamp.ts";
import { webhookRefusal } from "../refusals.ts";
import { OwnedEvent } from "./owned-event.ts";
import type { EventContext, EventHandler } from "./webhook-handler-types.ts";

export interface LatestOnlyOptions<Event extends WebhookEvent = WebhookEvent> {
  /** Returns the identity of the event's subject, such as the buyer's id. */
  readonly key: (event: Event) => string;
  /** Gets what is skipped because it is older than what was handled last; a throw repeats the event. Default: nothing. */
  readonly onStale?: EventHandler<Event> | undefined;
  /** Where the times are kept. Default `memoryLatestTimestamps()`. */
  readonly latest?: LatestTimestamps | undefined;
}

const factoryName = "latestOnly";

export const table = {
  key: option.call(),
  onStale: option.optional(option.call(), "nothing"),
  latest: option.optional(option.own(readLatest), "`memoryLatestTimestamps()`"),
} satisfies OptionTable<LatestOnlyOptions, unknown>;

export const memoryTable: OptionTable<MemoryLatestTimestampsOptions> = {
  max: option.integer({ min: 1, max: 10_000_000, fallback: 100_000 }),
};

// Handlers that share their times have to take turns.
const queues = new WeakMap<LatestTimestamps, LatestQueue>();

/**
 * Skips events strictly older than the last one handled for their key: webhooks come out of order. Events of one key run one after another
 * within this process. Throws a TypeError on a bad option.
 */
export function latestOnly<Event extends WebhookEvent>(
  options: LatestOnlyOptions<Event>,
  handler: EventHandler<Event>,
): EventHandler<Event> {
  const { latest = memoryLatestTimestamps() } = readOptions(factoryName, table, options);
  const { key, onStale = skip } = options;
  assertFunction(factoryName, "handler", handler);
  const queue = queues.get(latest) ?? new LatestQueue();
  queues.set(latest, queue);
  return async (event, context) => {
    const turn = turnContext(context);
    const of = checkKey(key(event));
    const place = queue.join(of, turn);
    try {
      if (!place.working) await queue.turnOf(place);
      const known = await latest.get(of);
      turn.assertOwned();
      if (isKnown(known) && compareTimestamps(event.timestamp, known) < 0) {
        await onStale(event, context);
        return;
      }
      await handler(event, context);
      // A given-up event has lost its turn to another one, whose newer time it would overwrite.
      turn.assertOwned();
      await latest.set(of, event.timestamp);
    } finally {
      queue.leave(place);
    }
  };
}

function readLatest(latest: unknown, owner: OptionOwner, name: string): LatestTimestamps {
  if (typeof latest !== "object" || latest === null) {
    throw optionError(owner, name, "an object with get() and set()", latest);
  }
  assertLatest(latest, owner, name);
  return latest;
}

function assertLatest(latest: object, owner: OptionOwner, name: string): asserts latest is LatestTimestamps {
  assertFunction(owner, `${name}.get`, Reflect.get(latest, "get"));
  assertFunction(owner, `${name}.set`, Reflect.get(latest, "set"));
}

// Not a copy: the signals of an event are made when they are asked for.
function turnContext(context: EventContext): TurnContext {
  if (context instanceof OwnedEvent) return context;
  const { signal } = context;
  return {
    signal,
    waitFor: (pending) => context.waitFor(pending),
    ownership: undefined,
    assertOwned: () => {},
  };
}

function checkKey(key: unknown): string {
  if (typeof key === "string" && key !== "") return key;
  throw optionError(factoryName, "key", "a function that returns a string that is not empty", key);
}

function skip(): void {}

function isKnown(timestamp: WebhookTimestamp | null | undefined): timestamp is WebhookTimestamp {
  return timestamp !== undefined && timestamp !== null;
}

/** Where `latestOnly` keeps the time of the last event that it handled for each key. */
export interface LatestTimestamps {
  /** undefined or null when nothing is known of the key. */
  get(key: string): Awaitable<WebhookTimestamp | null | undefined>;
  /** Called after the event was handled, with times that never go back in one process. */
  set(key: string, timestamp: WebhookTimestamp): Awaitable<void>;
}

export interface MemoryLatestTimestampsOptions {
  /** The number of keys; beyond it the least recently used one is forgotten. Default 100,000. */
  readonly max?: number | undefined;
}

/** Keeps the times in memory: lost on restart, and unknown to other processes. Throws a TypeError on a bad option. */
export function memoryLatestTimestamps(options: MemoryLatestTimestampsOptions = {}): LatestTimestamps {
  const { max } = readOptions("memoryLatestTimestamps", memoryTable, options);
  const times = new LRUCache<string, WebhookTimestamp>({ max });
  return {
    get: (key) => times.get(key),
    set: (key, timestamp) => {
      times.set(key, timestamp);
    },
  };
}

interface TurnContext extends Pick<EventContext, "signal" | "waitFor"> {
  /** Aborts when another attempt may own the event, which ends the turn. Undefined for contexts that this package did not make. */
  readonly ownership: AbortSignal | undefined;
  /** Throws once `ownership` has aborted. */
  assertOwned(): void;
}

/** A place in the queue of a key: the first one has the turn. */
interface Place {
  readonly key: string;
  readonly context: TurnContext;
  /** Whether its turn has come and it has begun. */
  working: boolean;
  /** Whether it leaves the queue when its event is given up. */
  watched: boolean;
  advance: () => void;
}

/** Orders a key's events by arrival. A handler that hangs keeps its turn until given up: it could overwrite a newer event later. */
class LatestQueue {
  readonly #rows = new Map<string, Place[]>();

  /**
   * Takes a place, to be left with leave(): `working` when the key is free, otherwise wait by turnOf(). Throws a GuardError
   * `event-not-begun` after work whose own time is up: a thousand events would wait in turn for the one that hangs.
   */
  join(key: string, context: TurnContext): Place {
    const row = this.#rowOf(key);
    const place: Place = { key, context, working: row === undefined, watched: false, advance: noOne };
    if (row === undefined) this.#rows.set(key, [place]);
    else {
      const [first] = row;
      if (first?.working === true && first.context.signal.aborted) throw webhookRefusal("event-not-begun");
      row.push(place);
      if (first !== undefined) this.#watch(first);
    }
    return place;
  }

  /** Resolves when the place has the turn; rejects with the signal's reason when that aborts before. */
  async turnOf(place: Place): Promise<void> {
    const { signal, waitFor } = place.context;
    const turn = new Promise<void>((resolve) => {
      place.advance = resolve;
    });
    await waitFor(unlessAborted(turn, signal));
    place.working = true;
    // A place that joined while this one waited has not watched it.
    this.#watch(place);
  }

  /** Does nothing if the turn has ended already. */
  leave(place: Place): void {
    const row = this.#rows.get(place.key);
    const position = row?.indexOf(place) ?? -1;
    if (row === undefined || position === -1) return;
    row.splice(position, 1);
    if (row.length === 0) this.#rows.delete(place.key);
    else if (position === 0) row[0]?.advance();
  }

  /** The queue, without a first place whose event was given up unwatched. */
  #rowOf(key: string): Place[] | undefined {
    const first = this.#rows.get(key)?.[0];
    if (first?.working === true && first.context.ownership?.aborted === true) this.leave(first);
    return this.#rows.get(key);
  }

  #watch(place: Place): void {
    const { ownership } = place.context;
    if (place.watched || ownership === undefined) return;
    place.watched = true;
    // An aborted signal fires no event: the turn would never end.
    if (ownership.aborted) this.leave(place);
    else ownership.addEventListener("abort", () => this.leave(place), { once: true });
  }
}

function noOne(): void {}

async function unlessAborted(wait: Promise<void>, signal: AbortSignal): Promise<void> {
  signal.throwIfAborted();
  await Promise.race([wait, once(signal, "abort")]);
  signal.throwIfAborted();
}
