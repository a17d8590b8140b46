import { isPromiseLike } from "@countersign/guard";
import type { Awaitable } from "@countersign/idempotency-guard";
import { eventNotBegun } from "./event-faults.ts";
import type { EventContext } from "./webhook-handler-types.ts";

/** What a turn knows of its event. */
export interface TurnContext extends Pick<EventContext, "signal" | "waitFor"> {
  /** Aborts when the event was taken from its run, which then has no turn any more. Unknown for contexts of somebody else. */
  readonly ownership: AbortSignal | undefined;
}

interface Turn<T> {
  readonly key: string;
  readonly context: TurnContext;
  readonly work: () => Awaitable<T>;
}

/**
 * Does work for one key at a time, in the order of arrival; work for other keys goes on meanwhile. Work that hangs keeps its
 * turn until its event is given up: a turn that ended before could be followed by a newer event that the old one writes over.
 */
export class LatestQueue {
  /** What the next one of a key has to wait for. */
  readonly #tails = new Map<string, Promise<void>>();
  /** Who has the turn of a key, while others may have to wait. */
  readonly #working = new Map<string, TurnContext>();

  /**
   * Begins at once when the key is free. Rejects with the signal's reason when it aborts before the turn has come, and throws a
   * GuardError `event-not-begun` behind work whose own time is up: a webhook of a thousand events would wait a thousand times for
   * the one that hangs. Signals are only asked for when there is a wait.
   */
  run<T>(turn: Turn<T>): Awaitable<T> {
    const { key, context, work } = turn;
    const tail = this.#tails.get(key);
    if (tail !== undefined) {
      if (this.#working.get(key)?.signal.aborted === true) throw eventNotBegun();
      return this.#runAfter(tail, turn);
    }
    const result = work();
    if (!isPromiseLike(result)) return result;
    this.#append(key, this.#turnOf(key, context, result));
    return result;
  }

  async #runAfter<T>(tail: Promise<void>, { key, context, work }: Turn<T>): Promise<T> {
    let leave: (() => void) | undefined;
    const turn = new Promise<void>((resolve) => {
      leave = resolve;
    });
    this.#append(key, both(tail, turn));
    try {
      await context.waitFor(unlessAborted(tail, context.signal));
      const result = work();
      if (!isPromiseLike(result)) return result;
      // oxlint-disable-next-line promise/prefer-await-to-then -- the turn may end before the work does
      void this.#turnOf(key, context, result).then(leave);
      return await result;
    } finally {
      leave?.();
    }
  }

  /** Resolves when the work has ended, or its event was given up. */
  async #turnOf(key: string, context: TurnContext, work: PromiseLike<unknown>): Promise<void> {
    this.#working.set(key, context);
    const end = settled(work);
    const { ownership } = context;
    await (ownership === undefined ? end : Promise.race([end, abortOf(ownership)]));
    if (this.#working.get(key) === context) this.#working.delete(key);
  }

  #append(key: string, tail: Promise<void>): void {
    this.#tails.set(key, tail);
    void this.#removeAfter(key, tail);
  }

  async #removeAfter(key: string, tail: Promise<void>): Promise<void> {
    await tail;
    if (this.#tails.get(key) === tail) this.#tails.delete(key);
  }
}

async function settled(work: PromiseLike<unknown>): Promise<void> {
  try {
    await work;
  } catch {
    // Whoever began it gets the error.
  }
}

async function both(first: Promise<void>, second: Promise<void>): Promise<void> {
  await first;
  await second;
}

async function unlessAborted(wait: Promise<void>, signal: AbortSignal): Promise<void> {
  signal.throwIfAborted();
  await Promise.race([wait, abortOf(signal)]);
  signal.throwIfAborted();
}

function abortOf(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    signal.addEventListener("abort", () => resolve(), { once: true });
  });
}
