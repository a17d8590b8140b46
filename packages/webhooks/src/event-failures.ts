import { randomUUID } from "node:crypto";
import { isPromiseLike } from "@countersign/guard";
import type { Awaitable, IdempotencyKeys, IdempotencyRecord } from "@countersign/idempotency-guard";

/**
 * Counts the failures of an event where its key is: durable, and known to every process. Failure n is a done key of its own;
 * one that was being written when the process died counts as well.
 */
export class EventFailures {
  readonly #keys: IdempotencyKeys;
  readonly #max: number;

  constructor(keys: IdempotencyKeys, max: number) {
    this.#keys = keys;
    this.#max = max;
  }

  /** How many failures are known, at most `max`. Throws or rejects when the store does not say. */
  count(key: string): Awaitable<number> {
    for (let known = 0; known < this.#max; known += 1) {
      const record = this.#keys.read(failureKey(key, known + 1));
      if (isPromiseLike(record)) return this.#countLater(key, known, record);
      if (record === undefined) return known;
    }
    return this.#max;
  }

  async #countLater(
    key: string,
    known: number,
    pending: Promise<IdempotencyRecord | undefined>,
  ): Promise<number> {
    if ((await pending) === undefined) return known;
    for (let next = known + 1; next < this.#max; next += 1) {
      // oxlint-disable-next-line no-await-in-loop -- the first that is missing ends the count
      if ((await this.#keys.read(failureKey(key, next + 1))) === undefined) return next;
    }
    return this.#max;
  }

  /** Records a failure. One that the store does not take is not counted: the event is tried once more than was asked for. */
  async record(key: string, failure: number): Promise<void> {
    try {
      const attempt = { key: failureKey(key, failure), fingerprint: "failure", token: randomUUID() };
      const acquired = await this.#keys.acquire(attempt);
      if (acquired.status === "acquired") await acquired.complete();
    } catch {
      // acquire() has seen to it that no claim is left behind.
    }
  }
}

// No event has such a key: an event_id holds no control characters.
function failureKey(key: string, failure: number): string {
  return `${key}\tfailure-${failure}`;
}
