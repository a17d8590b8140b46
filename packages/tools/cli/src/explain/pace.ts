import { setImmediate as nextTurn } from "node:timers/promises";

export interface PaceInit {
  /** Monotonic milliseconds. */
  readonly now: () => number;
  readonly turn: () => Promise<unknown>;
}

// A first step, not yet compiled, takes up to 15 ms: others wait at most about 20 ms.
const budgetMs = 5;

/** Runs long work one at a time. Yields to the event loop every 5 ms and one step. */
export class Pace {
  readonly #init: PaceInit;
  #last: Promise<unknown> = Promise.resolve();
  #sinceMs = -Infinity;

  constructor(init: PaceInit) {
    this.#init = init;
  }

  /** Starts `work` after all earlier work, at the start of a turn. */
  run<T>(work: () => Promise<T>): Promise<T> {
    const done = this.#last.then(async () => {
      await this.#rest();
      return work();
    });
    this.#last = done.catch(() => {});
    return done;
  }

  async rest(): Promise<void> {
    if (this.#init.now() - this.#sinceMs >= budgetMs) await this.#rest();
  }

  async #rest(): Promise<void> {
    await this.#init.turn();
    this.#sinceMs = this.#init.now();
  }
}

/** One per process, shared by all explanations. */
export const pace: Pace = new Pace({ now: () => performance.now(), turn: () => nextTurn() });
