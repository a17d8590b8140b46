import { givenUp, type Steps } from "./steps.ts";

/** How far a request has come in its present transaction. */
export class Progress {
  begun = false;
  /** COMMIT may have been sent. */
  committing = false;
  /** The transaction was rolled back, and the store has not yet said whether something of it has committed. */
  looking = false;
  #abandoned = false;
  #close: (() => void) | undefined;
  #giveUp: ((reason: Error) => void) | undefined;
  #isHandling = false;

  /** Nobody waits for the request any more: it sends no COMMIT. */
  get abandoned(): boolean {
    return this.#abandoned;
  }

  /**
   * Settles as `work` does, or rejects when the run is given up while its handler runs: the store then rolls back, and the connection returns
   * to its pool, although the handler goes on. A handler that waits for that very pool would otherwise keep its connection for ever.
   */
  untilGivenUp<T>(work: Promise<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      this.#giveUp = reject;
      work.then(resolve, reject);
    });
  }

  /** Runs a handler. Only this is interrupted by {@link Progress.abandon}: the store's own steps have time limits, and end what they began. */
  *handling<T>(work: () => Steps<T>): Steps<T> {
    this.#isHandling = true;
    try {
      return yield* work();
    } finally {
      this.#isHandling = false;
    }
  }

  /** `close` rejects the handler's later statements. */
  opened(close: () => void): void {
    this.#close = close;
    if (this.#abandoned) close();
  }

  /** Gives the run up (I26): its handler may go on, and none of its statements takes effect. */
  abandon(): void {
    this.#abandoned = true;
    this.#close?.();
    if (this.#isHandling) this.#giveUp?.(givenUp());
  }
}
