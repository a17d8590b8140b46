import { AsyncResource } from "node:async_hooks";

/** What is told that its time is up. */
export interface Expiring {
  /** Must not throw. */
  expire(): void;
}

/** Where time comes from: both of one kind, so that what waits for one is compared with the other. */
export interface Clock {
  /** Monotonic, in milliseconds. */
  now(this: void): number;
  startTimer(this: void, callback: () => void, delayMs: number): NodeJS.Timeout;
}

/** Milliseconds since 1970 by the clock that is there when it is asked: also a fake one that came later. */
export function systemClock(): number {
  return Date.now();
}

/** What is there when it is asked: also a fake clock that came later. */
const presentClock: Clock = {
  now: () => performance.now(),
  startTimer: (callback, delayMs) => setTimeout(callback, delayMs),
};

// A timer keeps the asynchronous context in which it was started: here it would be that of some request, for as long as others come.
const outside = new AsyncResource("countersign.deadlines");

/**
 * One timer for all that wait equally long: they expire in the order in which they were added. Without `keepsAlive` none of them
 * keeps the process alive; with it, each does until it expires or is removed.
 */
export class Deadlines {
  readonly #timeoutMs: number;
  readonly #keepsAlive: boolean;
  readonly #clock: Clock;
  /** When each one expires. */
  readonly #waiting = new Map<Expiring, number>();
  #timer: NodeJS.Timeout | undefined;
  #dueMs = 0;

  constructor(
    timeoutMs: number,
    { keepsAlive, clock = presentClock }: { readonly keepsAlive: boolean; readonly clock?: Clock },
  ) {
    this.#timeoutMs = timeoutMs;
    this.#keepsAlive = keepsAlive;
    this.#clock = clock;
  }

  /** Whether nothing waits and no timer runs. */
  get idle(): boolean {
    return this.#timer === undefined && this.#waiting.size === 0;
  }

  add(one: Expiring): void {
    const nowMs = this.#clock.now();
    this.#waiting.set(one, nowMs + this.#timeoutMs);
    if (this.#timer === undefined) this.#schedule(nowMs + this.#timeoutMs, nowMs);
    else if (this.#keepsAlive && this.#waiting.size === 1) this.#timer.ref();
  }

  remove(one: Expiring): void {
    if (this.#waiting.delete(one) && this.#keepsAlive && this.#waiting.size === 0) this.#timer?.unref();
  }

  // The timer outlives what it was set for, so that what ends in time never stops and starts one.
  #schedule(dueMs: number, nowMs: number): void {
    this.#dueMs = dueMs;
    const delayMs = Math.ceil(dueMs - nowMs);
    this.#timer = outside.runInAsyncScope(() => this.#clock.startTimer(() => this.#tick(), delayMs));
    if (!this.#keepsAlive) this.#timer.unref();
  }

  #tick(): void {
    this.#timer = undefined;
    const nowMs = this.#clock.now();
    // Node's timers may be early by a part of a millisecond: what this one was set for has expired.
    const reachedMs = Math.max(nowMs, this.#dueMs);
    // Before anybody is told, who may add another one.
    for (const expiresAtMs of this.#waiting.values()) {
      if (expiresAtMs <= reachedMs) continue;
      this.#schedule(expiresAtMs, nowMs);
      break;
    }
    for (const [one, expiresAtMs] of this.#waiting) {
      if (expiresAtMs > reachedMs) return;
      this.#waiting.delete(one);
      one.expire();
    }
  }
}

/**
 * Settles as `work` does, or rejects with what `late()` returns after `timeoutMs` milliseconds; keeps the process alive until then.
 * `work` itself goes on: whoever owns the effect must expect that it happens later.
 */
export function withDeadline<T>(work: PromiseLike<T>, timeoutMs: number, late: () => Error): Promise<T> {
  return new Promise<T>((resolve, reject) => {
    const deadlines = deadlinesOf(timeoutMs);
    const one: Expiring = { expire: () => reject(errorOf(late)) };
    const onFulfilled = (value: T): void => {
      deadlines.remove(one);
      resolve(value);
    };
    const onRejected = (error: unknown): void => {
      deadlines.remove(one);
      reject(error);
    };
    deadlines.add(one);
    // Through a promise: a thenable of somebody's own may throw, or answer twice.
    Promise.resolve(work).then(onFulfilled, onRejected);
  });
}

/**
 * As {@link withDeadline}, for an answer that may be there already: that is returned as it is, without a deadline or a promise. To
 * be awaited.
 */
export function inTime<T>(answer: T | PromiseLike<T>, timeoutMs: number, late: () => Error): T | Promise<T> {
  return isPromiseLike(answer) ? withDeadline(answer, timeoutMs, late) : answer;
}

/** Whether a store or a handler answered with a promise; synchronous ones cost no turn of the event loop. */
export function isPromiseLike<T>(value: T | PromiseLike<T>): value is PromiseLike<T> {
  // `await` takes a function with a `then` for a promise too.
  if ((typeof value !== "object" && typeof value !== "function") || value === null) return false;
  return "then" in value && typeof value.then === "function";
}

// An error that cannot be made must not leave somebody waiting for ever.
function errorOf(late: () => Error): unknown {
  try {
    return late();
  } catch (error) {
    return error;
  }
}

const { setTimeout: startTimer } = globalThis;
const clock: Clock = {
  now: performance.now.bind(performance),
  startTimer: (callback, delayMs) => startTimer(callback, delayMs),
};

// Each keeps a timer for a while after its last use.
const maxShared = 64;
const shared = new Map<number, Deadlines>();

/** A store call that answers in time starts and stops no timer: they share one for each time-out. */
function deadlinesOf(timeoutMs: number): Pick<Deadlines, "add" | "remove"> {
  // Somebody has put a fake clock in place: what began by one clock must not be ended, or forgotten, by another.
  if (globalThis.setTimeout !== startTimer) return ownTimer(timeoutMs);
  let deadlines = shared.get(timeoutMs);
  if (deadlines === undefined) {
    if (shared.size >= maxShared) removeIdle();
    if (shared.size >= maxShared) return ownTimer(timeoutMs);
    deadlines = new Deadlines(timeoutMs, { keepsAlive: true, clock });
    shared.set(timeoutMs, deadlines);
  }
  return deadlines;
}

function removeIdle(): void {
  for (const [timeoutMs, deadlines] of shared) if (deadlines.idle) shared.delete(timeoutMs);
}

function ownTimer(timeoutMs: number): Pick<Deadlines, "add" | "remove"> {
  let timer: NodeJS.Timeout | undefined;
  return {
    add: (one) => {
      timer = setTimeout(() => one.expire(), timeoutMs);
    },
    remove: () => clearTimeout(timer),
  };
}
