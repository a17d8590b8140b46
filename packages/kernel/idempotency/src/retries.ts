import type { Awaitable } from "./store.ts";

const firstDelayMs = 100;
const longestDelayMs = 10_000;
const giveUpAfterMs = 3_600_000;

// At most 2,000 claims may be unconfirmed; the next is refused, unsent. Otherwise a store that is down fills the memory, and a claim that
// cannot be given back leaves its key to an operator although nothing ran (I13).
const maxClaims = 2_000;

/** Repeats refused steps in the background. Its timers keep no process alive. */
export class Retries {
  readonly #tasks = new Set<Task>();
  #claims = 0;

  /** Claims under way, or waiting to be given back. */
  get claims(): number {
    return this.#claims;
  }

  /** Takes a place for a claim before it is sent; false without one. */
  reserveClaim(): boolean {
    if (this.#claims >= maxClaims) return false;
    this.#claims += 1;
    return true;
  }

  /** Gives back the place of a claim that was answered. */
  claimAnswered(): void {
    this.#claims -= 1;
  }

  /** Repeats `step` until it returns true, with growing pauses; calls `abandoned` after an hour. */
  repeat(step: () => Awaitable<boolean>, abandoned: () => void): void {
    const giveUpAt = performance.now() + giveUpAfterMs;
    const onFailure = (): boolean => {
      if (performance.now() < giveUpAt) return true;
      abandoned();
      return false;
    };
    this.#start(step, onFailure).pause();
  }

  /** As repeat(), after `delayMs`, without a report. */
  repeatLater(delayMs: number, step: () => Awaitable<boolean>): void {
    setTimeout(() => this.repeat(step, () => {}), delayMs).unref();
  }

  /** Repeats `step` without end until it returns true, then frees the claim's place. Pauses: at most `longestPauseMs` and 10 s. */
  giveBackClaim(longestPauseMs: number, step: () => Awaitable<boolean>): void {
    const counted = async (): Promise<boolean> => {
      const done = await step();
      if (done) this.claimAnswered();
      return done;
    };
    this.#start(counted, () => true, longestPauseMs).hurry();
  }

  hurry(): void {
    for (const task of this.#tasks) task.hurry();
  }

  #start(step: () => Awaitable<boolean>, onFailure: () => boolean, longestPauseMs = longestDelayMs): Task {
    const work = async (): Promise<boolean> => {
      const ended = (await succeeds(step)) || !onFailure();
      if (ended) this.#tasks.delete(task);
      return ended;
    };
    const task = new Task(work, Math.min(longestPauseMs, longestDelayMs));
    this.#tasks.add(task);
    return task;
  }
}

class Task {
  readonly #attempt: () => Promise<boolean>;
  readonly #longestDelayMs: number;
  #delayMs = firstDelayMs;
  #timer: NodeJS.Timeout | undefined;
  #running = false;

  constructor(attempt: () => Promise<boolean>, longestMs: number) {
    this.#attempt = attempt;
    this.#longestDelayMs = longestMs;
  }

  pause(): void {
    this.#timer = setTimeout(() => this.hurry(), this.#delayMs).unref();
    this.#delayMs = Math.min(this.#delayMs * 2, this.#longestDelayMs);
  }

  /** Attempts the step now, unless an attempt is under way. */
  hurry(): void {
    if (this.#running) return;
    clearTimeout(this.#timer);
    void this.#run();
  }

  async #run(): Promise<void> {
    this.#running = true;
    const ended = await this.#attempt();
    this.#running = false;
    if (!ended) this.pause();
  }
}

async function succeeds(step: () => Awaitable<boolean>): Promise<boolean> {
  try {
    return await step();
  } catch {
    return false;
  }
}
