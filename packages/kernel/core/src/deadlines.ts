import { AsyncResource } from "node:async_hooks";
import { guardChannel } from "./observation/channels.ts";
import { traced, traces, type StoreTrace } from "./observation/traces.ts";
import { noteStoreTime } from "./observation/verdict.ts";

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

/** Milliseconds since 1970. Looks `Date` up at each call: a test may have replaced it. */
export function systemClock(): number {
  return Date.now();
}

// The globals are looked up at each call: a test may have replaced them.
const presentClock: Clock = {
  now: () => performance.now(),
  startTimer: (callback, delayMs) => setTimeout(callback, delayMs),
};

// A timer would keep the asynchronous context of the request that started it.
const outside = new AsyncResource("countersign.deadlines");

/** One timer for equally long waits, which expire in order. `keepsAlive`: each keeps the process alive until it expires or is removed. */
export class Deadlines {
  readonly #timeoutMs: number;
  readonly #keepsAlive: boolean;
  readonly #clock: Clock;
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

  // The timer outlives its purpose, so that work that ends in time never stops and starts one.
  #schedule(dueMs: number, nowMs: number): void {
    this.#dueMs = dueMs;
    const delayMs = Math.ceil(dueMs - nowMs);
    this.#timer = outside.runInAsyncScope(() => this.#clock.startTimer(() => this.#tick(), delayMs));
    if (!this.#keepsAlive) this.#timer.unref();
  }

  #tick(): void {
    this.#timer = undefined;
    const nowMs = this.#clock.now();
    // Node's timers may fire a fraction of a millisecond early: count this one's time as reached.
    const reachedMs = Math.max(nowMs, this.#dueMs);
    // Before any expires, since that may add another.
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

/** Settles as `work`, or rejects with `late()` after `timeoutMs`; its effect may come later. Keeps the process alive until then. */
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
    // Through a promise: an app's thenable may throw, or answer twice.
    Promise.resolve(work).then(onFulfilled, onRejected);
  });
}

/** As {@link withDeadline}; returns an answer that is no promise unchanged. Await it. */
export function inTime<T>(answer: T | PromiseLike<T>, timeoutMs: number, late: () => Error): T | Promise<T> {
  return isPromiseLike(answer) ? withDeadline(answer, timeoutMs, late) : answer;
}

/** True for a promise; synchronous answers then cost no turn of the event loop. */
export function isPromiseLike<T>(value: T | PromiseLike<T>): value is PromiseLike<T> {
  // `await` accepts a function with a `then` too.
  if ((typeof value !== "object" && typeof value !== "function") || value === null) return false;
  return "then" in value && typeof value.then === "function";
}

/** True for a promise where an answer is due at once. Its rejection is nobody's then, and must not end the process. */
function isVainPromise(value: unknown): boolean {
  if (!isPromiseLike(value)) return false;
  value.then(undefined, () => {});
  return true;
}

/** Throws what an app's function returned that cannot mean success: an Error, or a TypeError of this message for a Response, which nobody sends. */
function throwFailure(returned: unknown, ofResponse: string): void {
  if (returned instanceof Error) throw returned;
  if (returned instanceof Response) throw new TypeError(ofResponse);
}

/** What an app's functions return. */
export const appAnswers = { isVainPromise, throwFailure };

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

/** Store calls share one timer for each time-out: an answer in time starts and stops none. */
function deadlinesOf(timeoutMs: number): Pick<Deadlines, "add" | "remove"> {
  // A test has replaced the clock: one clock must not end what another began.
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

/** One kind of call of a store, made once and reused: a request makes several calls. */
export interface StoreStep {
  /** The store's `engine`. Default `other`. */
  readonly engine?: string | undefined;
  /** The word for the call on `countersign:store`. Untraced without one. */
  readonly step?: string | undefined;
  readonly timeoutMs: number;
  /** The store's name in errors, such as `the key store`. */
  readonly name: string;
  /** Returns what to throw for the store's error or late answer. Default: that error. */
  readonly failure?: ((cause: unknown) => unknown) | undefined;
  /** Returns the outcome on `countersign:store` of an error that is no fault of the store, such as `conflict`. Default: `error`. */
  readonly faultOf?: ((error: unknown) => string | undefined) | undefined;
}

/**
 * Asks a store once: the only place that traces a call, bounds its time and translates its failure. Returns an answer that is
 * no promise unchanged, so that a synchronous transaction can use it. A late call goes on: its effect may come later. With
 * `req` the time counts as `storeMs` of that request's verdict.
 */
export function askStore<T>(asked: StoreStep, call: () => T | PromiseLike<T>, req?: object): T | Promise<T> {
  const { failure } = asked;
  const startedAtMs = req !== undefined && guardChannel.hasSubscribers ? performance.now() : 0;
  try {
    const answer =
      asked.step !== undefined && traces.store.hasSubscribers
        ? tracedAnswer(asked, asked.step, call)
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

/** Asks an app's own function once: as {@link askStore}, untraced. Await it. */
export function askApp<T>(
  asked: Omit<StoreStep, "engine" | "step" | "faultOf">,
  call: () => T | PromiseLike<T>,
): T | Promise<T> {
  return askStore(asked, call);
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

function tracedAnswer<T>(asked: StoreStep, step: string, call: () => T | PromiseLike<T>): T | Promise<T> {
  const { engine = "other", timeoutMs } = asked;
  const context: StoreTrace = { engine, step };
  let isLate = false;
  const late = (): Error => {
    isLate = true;
    return lateError(asked);
  };
  return traced(traces.store, context, {
    work: () => inTime(call(), timeoutMs, late),
    outcomeOf: () => "ok",
    faultOf: () => (isLate ? "timeout" : (asked.faultOf?.(context.error) ?? "error")),
  });
}

function lateError({ name, timeoutMs }: StoreStep): Error {
  return new Error(`${name} did not answer within ${timeoutMs} ms`);
}
