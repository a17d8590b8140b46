import { setImmediate as nextTurn } from "node:timers/promises";

/** The time and the turns of the event loop that work is paced by. */
export interface PaceInit {
  /** Milliseconds that never go back. */
  readonly now: () => number;
  /** Resolves when everybody else has had a turn. */
  readonly turn: () => Promise<unknown>;
}

// A first step, before the compiler knows it, takes up to 15 ms: others wait for about 20 ms at the most.
const budgetMs = 5;

/** Does long work one after the other, in pieces of 5 ms and the step that is begun then: others wait no longer than for one. */
export class Pace {
  readonly #init: PaceInit;
  #last: Promise<unknown> = Promise.resolve();
  #sinceMs = -Infinity;

  constructor(init: PaceInit) {
    this.#init = init;
  }

  /** Begins `work` when all that was handed in before is over, at the beginning of a turn. */
  run<T>(work: () => Promise<T>): Promise<T> {
    const done = this.#last.then(async () => {
      await this.#rest();
      return work();
    });
    this.#last = done.catch(() => {});
    return done;
  }

  /** To be awaited between two steps. */
  async rest(): Promise<void> {
    if (this.#init.now() - this.#sinceMs >= budgetMs) await this.#rest();
  }

  async #rest(): Promise<void> {
    await this.#init.turn();
    this.#sinceMs = this.#init.now();
  }
}

/** One for the process: explanations that are asked for at once share its turns. */
export const pace: Pace = new Pace({ now: () => performance.now(), turn: () => nextTurn() });
