// Not the global one, which tests of an app may hold.
import { setImmediate } from "node:timers";

/** How long the work of webhooks holds the event loop before it gives it back. With the step that is under way it stays under 20 ms. */
const sliceMs = 8;

/**
 * One slice of work in each turn of the event loop, whatever the number of webhooks: each of them with a slice of its own
 * would let a hundred at a time hold the loop for as long as one without slices.
 */
class WorkSlices {
  #endsAtMs: number | undefined;
  readonly #waiting: (() => void)[] = [];

  /** Whether whoever works has to wait for next() before its next step. */
  get over(): boolean {
    const nowMs = performance.now();
    if (this.#endsAtMs === undefined) {
      this.#begin(nowMs);
      return false;
    }
    return nowMs >= this.#endsAtMs;
  }

  /** Resolves in a turn of its own, in the order of asking. */
  next(): Promise<void> {
    if (this.#endsAtMs === undefined) this.#begin(performance.now());
    return new Promise((resolve) => {
      this.#waiting.push(resolve);
    });
  }

  #begin(nowMs: number): void {
    this.#endsAtMs = nowMs + sliceMs;
    // Neither a timer nor a microtask: between two of these, everything else that is due gets its turn.
    setImmediate(() => this.#end());
  }

  #end(): void {
    this.#endsAtMs = undefined;
    const resume = this.#waiting.shift();
    if (resume === undefined) return;
    this.#begin(performance.now());
    resume();
  }
}

/** Of this process. */
export const workSlices: WorkSlices = new WorkSlices();
