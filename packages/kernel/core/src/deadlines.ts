import { AsyncResource } from "node:async_hooks";
import { guardChannel } from "./observation/channels.ts";
import { storeTrace, traced, type StoreTrace } from "./observation/traces.ts";
import { noteStoreTime } from "./observation/verdict.ts";

/** What waits for a deadline. */
export interface Expiring {
  /** Must not throw. */
  expire(): void;
}

/** `now` and `startTimer` must share one time source. */
export interface Clock {
  /** Monotonic, in milliseconds. */
  now(this: void): number;
  startTimer(this: void, callback: () => void, delayMs: number): NodeJS.Timeout;
}

/** Milliseconds since 1970. Looks `Date` up at each call: a test may have put a fake one there. */
export function systemClock(): number {
  return Date.now();
}

/** Looks the globals up at each call: a test may have put fake ones there. */
const presentClock: Clock = {
  now: () => performance.now(),
  startTimer: (callback, delayMs) => setTimeout(callback, delayMs),
};

// A timer keeps the asynchronous context that started it, which would be that of some request.
const outside = new AsyncResource("countersign.deadlines");

/**
 * One timer for all that wait equally long; they expire in the order in which they were added. With `keepsAlive` each keeps the
 * process alive until it expires or is removed.
 */
export class Deadlines {
  readonly #timeoutMs: number;
  readonly #keepsAlive: boolean;
  readonly #clock: Clock;
  /** By when each expires. */
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
    // Before any expires, which may add another one.
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
 * `work` itself goes on: its effect may come later.
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
    // Through a promise: a thenable of an app's own may throw, or answer twice.
    Promise.resolve(work).then(onFulfilled, onRejected);
  });
}

/** As {@link withDeadline}; an answer that is no promise is returned as it is. To be awaited. */
export function inTime<T>(answer: T | PromiseLike<T>, timeoutMs: number, late: () => Error): T | Promise<T> {
  return isPromiseLike(answer) ? withDeadline(answer, timeoutMs, late) : answer;
}

/** Whether a store or a handler answered with a promise; synchronous ones cost no turn of the event loop. */
export function isPromiseLike<T>(value: T | PromiseLike<T>): value is PromiseLike<T> {
  // `await` takes a function with a `then` for a promise too.
  if ((typeof value !== "object" && typeof value !== "function") || value === null) return false;
  return "then" in value && typeof value.then === "function";
}

// An error that cannot be made must not leave its caller waiting for ever.
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

/** Store calls that answer in time start and stop no timer: they share one for each time-out. */
function deadlinesOf(timeoutMs: number): Pick<Deadlines, "add" | "remove"> {
  // A test has exchanged the clock: what began by one clock must not be ended, or forgotten, by another.
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

/** One kind of call of a store. Make it once: a request asks several. */
export interface StoreStep {
  /** `engine` of the store. Default `other`. */
  readonly engine: string | undefined;
  /** The word for the call on `countersign:store`. */
  readonly step: string;
  readonly timeoutMs: number;
  /** What errors call the store, such as `the key store`. */
  readonly name: string;
  /** Returns what is thrown in place of the store's error, or of that of a late answer. Default: that error. */
  readonly failure?: ((cause: unknown) => unknown) | undefined;
}

/**
 * Asks a store once: the one place that traces a call, bounds its time and translates its failure. An answer that is no promise is
 * returned as it is, so that a synchronous transaction can use it. A late call goes on: its effect may come later. With `req` the time
 * counts as `storeMs` of that request's verdict.
 */
export function askStore<T>(asked: StoreStep, call: () => T | PromiseLike<T>, req?: object): T | Promise<T> {
  const { failure } = asked;
  const startedAtMs = req !== undefined && guardChannel.hasSubscribers ? performance.now() : 0;
  try {
    const answer = storeTrace.hasSubscribers
      ? tracedAnswer(asked, call)
      : inTime(call(), asked.timeoutMs, () => lateError(asked));
    if (isPromiseLike(answer)) {
      return failure === undefined && startedAtMs === 0
        ? answer
        : laterAnswer(answer, { failure, req, startedAtMs });
    }
    noteTime(req, startedAtMs);
    return answer;
  } catch (error) {
    noteTime(req, startedAtMs);
    throw failure === undefined ? error : failure(error);
  }
}

interface Asking extends Pick<StoreStep, "failure"> {
  readonly req: object | undefined;
  readonly startedAtMs: number;
}

async function laterAnswer<T>(answer: Promise<T>, { failure, req, startedAtMs }: Asking): Promise<T> {
  try {
    return await answer;
  } catch (error) {
    throw failure === undefined ? error : failure(error);
  } finally {
    noteTime(req, startedAtMs);
  }
}

function noteTime(req: object | undefined, startedAtMs: number): void {
  if (req !== undefined && startedAtMs !== 0) noteStoreTime(req, performance.now() - startedAtMs);
}

/** In one trace, which ends when the caller has its answer. */
function tracedAnswer<T>(asked: StoreStep, call: () => T | PromiseLike<T>): T | Promise<T> {
  const { engine = "other", step, timeoutMs } = asked;
  const context: StoreTrace = { engine, step };
  let isLate = false;
  const late = (): Error => {
    isLate = true;
    return lateError(asked);
  };
  return traced(storeTrace, context, {
    work: () => inTime(call(), timeoutMs, late),
    outcomeOf: () => "ok",
    faultOf: () => (isLate ? "timeout" : "error"),
  });
}

function lateError({ name, timeoutMs }: StoreStep): Error {
  return new Error(`${name} did not answer within ${timeoutMs} ms`);
}
