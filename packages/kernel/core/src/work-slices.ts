// Not the global one, which an app's tests may replace.
import { clearImmediate, setImmediate } from "node:timers";

/** How long our own work may hold the event loop. With the last step it stays under 20 ms. */
const sliceMs = 8;

/**
 * One slice of work in each turn of the event loop, for all that works on through settled promises, which never yield to it: webhooks, and
 * tasks on SQLite. Shared: one for each of a hundred webhooks would block it like no slices at all.
 */
class WorkSlices {
  #endsAtMs: number | undefined;
  #ending: NodeJS.Immediate | undefined;
  readonly #waiting: (() => void)[] = [];

  /** Look right before the work: what awaits anything in between looks with others, and then works with them. */
  get over(): boolean {
    const nowMs = performance.now();
    if (this.#endsAtMs === undefined) {
      this.#begin(nowMs);
      return false;
    }
    return nowMs >= this.#endsAtMs;
  }

  /** Resolves in a turn of its own, in the order of the calls. */
  next(): Promise<void> {
    if (this.#endsAtMs === undefined) this.#begin(performance.now());
    // One that began before would end in this very turn, right behind what has used it up.
    else if (this.#waiting.length === 0) this.#endInAnotherTurn();
    return new Promise((resolve) => {
      this.#waiting.push(resolve);
    });
  }

  #begin(nowMs: number): void {
    this.#endsAtMs = nowMs + sliceMs;
    this.#endInAnotherTurn();
  }

  #endInAnotherTurn(): void {
    // Neither a timer nor a microtask: everything else that is due runs between two immediates.
    clearImmediate(this.#ending);
    this.#ending = setImmediate(() => this.#end());
  }

  #end(): void {
    this.#endsAtMs = undefined;
    const resume = this.#waiting.shift();
    if (resume === undefined) return;
    this.#begin(performance.now());
    resume();
  }
}

/** One per process. */
export const workSlices: WorkSlices = new WorkSlices();
