/** What is told that its time is up. */
export interface Expiring {
  expire(): void;
}

/** One timer for all runs that have the same time: they expire in the order in which they were added. */
export class EventDeadlines {
  readonly #timeoutMs: number;
  /** When each one expires, by the monotonic clock. */
  readonly #runs = new Map<Expiring, number>();
  #timer: NodeJS.Timeout | undefined;

  constructor(timeoutMs: number) {
    this.#timeoutMs = timeoutMs;
  }

  add(run: Expiring): void {
    this.#runs.set(run, performance.now() + this.#timeoutMs);
    if (this.#timer === undefined) this.#schedule(this.#timeoutMs);
  }

  remove(run: Expiring): void {
    this.#runs.delete(run);
  }

  // The timer outlives what it was set for, so that a run that ends in time never stops and starts one.
  #schedule(delayMs: number): void {
    this.#timer = setTimeout(() => this.#tick(), Math.ceil(delayMs)).unref();
  }

  #tick(): void {
    this.#timer = undefined;
    const nowMs = performance.now();
    for (const [run, expiresAtMs] of this.#runs) {
      if (expiresAtMs > nowMs) {
        this.#schedule(expiresAtMs - nowMs);
        return;
      }
      this.#runs.delete(run);
      run.expire();
    }
  }
}
