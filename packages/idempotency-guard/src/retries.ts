import type { Awaitable } from "./store.ts";

const firstDelayMs = 100;
const longestDelayMs = 10_000;
const giveUpAfterMs = 3_600_000;
const maxOptional = 1_000;

/** Steps that a store refused and that are repeated in the background. Its timers keep no process alive. */
export class Retries {
  #optional = 0;

  /** Repeats `step` until it returns true, with growing pauses; calls `abandoned` after an hour. */
  repeat(step: () => Awaitable<boolean>, abandoned: () => void): void {
    const giveUpAt = performance.now() + giveUpAfterMs;
    let delayMs = firstDelayMs;
    const attempt = async (): Promise<void> => {
      if (await succeeds(step)) return;
      if (performance.now() >= giveUpAt) abandoned();
      else pause();
    };
    const pause = (): void => {
      setTimeout(() => void attempt(), delayMs).unref();
      delayMs = Math.min(delayMs * 2, longestDelayMs);
    };
    pause();
  }

  /**
   * The same, beginning at once, for a step whose loss costs only time: a store that is down for all requests must not make
   * the process collect them, so a thousand at a time are tried and the rest is left to the end of the lease.
   */
  tryToRepeat(step: () => Awaitable<boolean>): void {
    if (this.#optional >= maxOptional) return;
    this.#optional += 1;
    const finished = (): void => {
      this.#optional -= 1;
    };
    const counted = async (): Promise<boolean> => {
      const done = await step();
      if (done) finished();
      return done;
    };
    void (async () => {
      if (!(await succeeds(counted))) this.repeat(counted, finished);
    })();
  }
}

async function succeeds(step: () => Awaitable<boolean>): Promise<boolean> {
  try {
    return await step();
  } catch {
    return false;
  }
}
