import { AsyncLocalStorage } from "node:async_hooks";
import { isPromiseLike } from "@countersign/guard";
import type { Attempt } from "./attempt.ts";
import { alarm } from "./notices.ts";
import { factory } from "./options.ts";
import type { OwnedKey } from "./owned-key.ts";
import type { Replacement } from "./response-head.ts";
import type { Awaitable } from "./store.ts";

/** The verdict on the handler's answer; undefined lets it out. */
type Verdict = Replacement | undefined;

const maxReasonLength = 256;

// What runs on behalf of a handler. A time-out middleware that stands before the guard has set its timer outside of it.
const handlers = new AsyncLocalStorage<Run>();

/** One handler's ownership of its key, settled by its answer. */
export class Run {
  readonly owned: OwnedKey;
  readonly #attempt: Attempt;
  readonly #recovery: "hold" | "rerun";
  #holdReason: string | undefined;
  #responseEnded = false;

  constructor(attempt: Attempt, owned: OwnedKey, recovery: "hold" | "rerun") {
    this.#attempt = attempt;
    this.owned = owned;
    this.#recovery = recovery;
  }

  /** Starts the handler. Under `hold` it has to be known later whether it was the handler that answered. */
  start(handler: () => void): void {
    if (this.#recovery === "hold") handlers.run(this, handler);
    else handler();
  }

  /** From here on a failure holds the key; throws once it is too late to be obeyed. */
  hold(reason: string): void {
    if (this.#responseEnded) throw new Error("req.idempotency.hold: the response has ended already");
    this.#holdReason = reason.slice(0, maxReasonLength);
  }

  /** Settles the key by the handler's answer. Neither throws nor rejects. */
  settle(status: number): Awaitable<Verdict> {
    this.#responseEnded = true;
    // A deliberate refusal is none of the handler's effects, but a server's error in its place may come while it still works.
    if ((status >= 500 || status === 408) && this.#mayStillWork()) {
      this.#holdReason ??= `answered with ${status} in place of its handler, which may still be at work`;
    }
    return this.owned.inTransaction ? this.#settleSoon(status) : this.#settleNow(status);
  }

  /** The response was destroyed by the app: its handler may still be at work, and nobody will hear from it. */
  settleDestroyed(): void {
    this.#responseEnded = true;
    if (this.#recovery === "hold") {
      this.#holdReason ??= "its response was destroyed while its handler may still have been at work";
    }
    void this.#leave();
  }

  #mayStillWork(): boolean {
    return this.#recovery === "hold" && handlers.getStore() !== this;
  }

  /**
   * A handler may end the response inside a transaction that commits when the present call stack returns, and on its own
   * connection it would read its own uncommitted record: I4 needs the look from outside.
   */
  async #settleSoon(status: number): Promise<Verdict> {
    await Promise.resolve();
    return this.#settleNow(status);
  }

  #settleNow(status: number): Awaitable<Verdict> {
    // An explicit success outweighs an earlier hold().
    if (status >= 200 && status < 300) return this.owned.complete();
    const left = this.#leave();
    const verdict = status === 409 ? this.#handlerAnswered409() : undefined;
    return isPromiseLike(left) ? after(left, verdict) : verdict;
  }

  #leave(): Awaitable<void> {
    return this.#holdReason === undefined ? this.owned.release() : this.owned.hold(this.#holdReason);
  }

  // A business conflict with this status would be read as "already paid", and the payout would never be retried.
  #handlerAnswered409(): Replacement {
    const { key, req } = this.#attempt;
    const message = "has a handler that answers 409, which is left to processed keys";
    alarm(factory, { code: "handler-answered-409", key, message, req });
    return { status: 500 };
  }
}

async function after<T>(work: Promise<void>, value: T): Promise<T> {
  await work;
  return value;
}
