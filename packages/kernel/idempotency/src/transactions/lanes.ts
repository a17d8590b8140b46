import { tracedWait } from "../waiters.ts";

interface Waiter {
  readonly go: () => void;
}

/** How an entrance ended: with the function that leaves the lane again, or why not. */
export type Entrance = (() => void) | "timeout" | "client-left";

/**
 * One attempt at a key at a time in this process: of many duplicates one may wait in the database, and the others here, without a
 * connection.
 */
export class Lanes {
  readonly #maxWaiters: number;
  readonly #factory: string;
  readonly #lanes = new Map<string, Waiter[]>();
  #waiting = 0;

  /** `factory`: the receiver's name in traces. */
  constructor(maxWaiters: number, factory: string) {
    this.#maxWaiters = maxWaiters;
    this.#factory = factory;
  }

  /** Waits for at most `waitMs` until nobody is at the key; `timeout` at once without room. `left` aborts when the client leaves. */
  async enter(key: string, waitMs: number, left: AbortSignal | undefined): Promise<Entrance> {
    const waiters = this.#lanes.get(key);
    if (waiters === undefined) {
      this.#lanes.set(key, []);
      return () => this.#leave(key);
    }
    if (left?.aborted === true) return "client-left";
    if (waitMs <= 0 || this.#waiting >= this.#maxWaiters) return "timeout";
    this.#waiting += 1;
    const entrance = await tracedWait<Entrance>({
      guard: this.#factory,
      key,
      work: () => this.#wait(key, waiters, waitMs, left),
      outcomeOf: (how) => (typeof how === "string" ? how : "claim"),
    });
    this.#waiting -= 1;
    return entrance;
  }

  #wait(key: string, waiters: Waiter[], waitMs: number, left: AbortSignal | undefined): Promise<Entrance> {
    return new Promise((resolve) => {
      const end = (how: Entrance): void => {
        clearTimeout(timer);
        left?.removeEventListener("abort", onLeft);
        const place = waiters.indexOf(waiter);
        if (place >= 0) waiters.splice(place, 1);
        resolve(how);
      };
      const waiter: Waiter = { go: () => end(() => this.#leave(key)) };
      const onLeft = (): void => end("client-left");
      const timer = setTimeout(() => end("timeout"), waitMs);
      left?.addEventListener("abort", onLeft);
      waiters.push(waiter);
    });
  }

  #leave(key: string): void {
    const next = this.#lanes.get(key)?.[0];
    if (next === undefined) this.#lanes.delete(key);
    else next.go();
  }
}
