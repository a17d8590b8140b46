import { isPromiseLike } from "@countersign/guard";
import type { Awaitable } from "@countersign/idempotency-guard";

/** Does work for one key at a time, in the order of arrival; work for other keys goes on meanwhile. */
export class LatestQueue {
  /** What the next one of a key has to wait for. */
  readonly #tails = new Map<string, Promise<void>>();

  /**
   * Begins at once when the key is free. Rejects with the signal's reason when it aborts before the turn has come; the signal is
   * only asked for when there is a wait.
   */
  run<T>(key: string, context: { readonly signal: AbortSignal }, work: () => Awaitable<T>): Awaitable<T> {
    const tail = this.#tails.get(key);
    if (tail !== undefined) return this.#runAfter(tail, { key, signal: context.signal, work });
    const result = work();
    if (!isPromiseLike(result)) return result;
    this.#append(key, settled(result));
    return result;
  }

  async #runAfter<T>(
    tail: Promise<void>,
    {
      key,
      signal,
      work,
    }: { readonly key: string; readonly signal: AbortSignal; readonly work: () => Awaitable<T> },
  ): Promise<T> {
    let leave: (() => void) | undefined;
    const turn = new Promise<void>((resolve) => {
      leave = resolve;
    });
    this.#append(key, both(tail, turn));
    try {
      await unlessAborted(tail, signal);
      return await work();
    } finally {
      leave?.();
    }
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
