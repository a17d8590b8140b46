import { AsyncResource } from "node:async_hooks";
import { isError } from "./errors.ts";

/** A loaded value, and the milliseconds until the next load in the background. */
interface Loaded<Value> {
  readonly value: Value;
  readonly refreshMs: number;
}

export interface RefreshSource<Value> {
  readonly guard: string;
  /** Rejects when there is no usable value. `previous` is the one in use. */
  readonly load: (signal: AbortSignal, previous: Value | undefined) => Promise<Loaded<Value>>;
  /** Milliseconds after an attempt in which no request causes another. */
  readonly cooldownMs: number;
  /** Monotonic, in milliseconds. */
  readonly clock: () => number;
  readonly onFailure: (error: Error, hasValue: boolean) => void;
  /** The error's text after close(): `the key store is closed`. */
  readonly closedBecause: string;
  readonly onClose?: (() => void) | undefined;
}

/**
 * A value that refreshes itself: one load at a time, by a timer that keeps no process alive. Failures keep the last good
 * value; its reader decides by {@link RefreshingValue.ageMs} how old one may be.
 */
export class RefreshingValue<Value> {
  readonly #source: RefreshSource<Value>;
  // Otherwise timers would keep the asynchronous context of some request.
  readonly #outside = new AsyncResource("countersign.refreshing-value");
  #value: Value | undefined;
  #loadedAtMs = 0;
  #attemptedAtMs = -Infinity;
  #failure: Error | undefined;
  #underWay: Promise<void> | undefined;
  /** Aborts the load under way: the value was replaced, or this is closed. */
  #loading: AbortController | undefined;
  #next: Promise<void> | undefined;
  #isClosed = false;
  #timer: NodeJS.Timeout | undefined;

  constructor(source: RefreshSource<Value>) {
    this.#source = source;
  }

  /** The last good one; undefined before the first. */
  get value(): Value | undefined {
    return this.#value;
  }

  /** The last attempt's error; undefined after a success. */
  get failure(): Error | undefined {
    return this.#failure;
  }

  get isClosed(): boolean {
    return this.#isClosed;
  }

  /** Counted from the request for the value: later changes are not in it. */
  ageMs(): number {
    return this.#source.clock() - this.#loadedAtMs;
  }

  /** A load is running, or may start now. */
  mayWait(): boolean {
    return this.#underWay !== undefined || this.mayAttempt();
  }

  mayAttempt(): boolean {
    return this.#source.clock() - this.#attemptedAtMs >= this.#source.cooldownMs;
  }

  /** Resolves once there is a value; rejects when the first load fails. */
  async ready(): Promise<void> {
    if (this.#value === undefined) await this.refresh();
  }

  /** Reads now, or joins the reading under way. Rejects without a usable value; the last good one stays. */
  refresh(): Promise<void> {
    if (this.isClosed) return Promise.reject(this.closed());
    this.#underWay ??= this.#start();
    return this.#underWay;
  }

  /** Reads after this call: as {@link refresh}, but a reading under way, which may have missed the latest change, is followed by one more. */
  refreshAgain(): Promise<void> {
    if (this.#underWay === undefined) return this.refresh();
    this.#next ??= this.#follow(this.#underWay);
    return this.#next;
  }

  /** Puts another value, or none, in place of the one in use, and reads. What a reading under way has read is dropped: it began before. */
  replace(value: Value | undefined): void {
    if (this.isClosed) return;
    this.#value = value;
    this.#underWay = undefined;
    this.#loading?.abort();
    this.refreshInBackground();
  }

  refreshInBackground(): void {
    // #load has reported it.
    void this.refresh().catch(() => {});
  }

  close(): void {
    if (this.isClosed) return;
    this.#isClosed = true;
    clearTimeout(this.#timer);
    this.#loading?.abort();
    this.#source.onClose?.();
  }

  closed(): Error {
    return new Error(`${this.#source.guard}: ${this.#source.closedBecause}`);
  }

  #start(): Promise<void> {
    const loading = new AbortController();
    this.#loading = loading;
    return this.#outside
      .runInAsyncScope(() => this.#load(loading.signal))
      .finally(() => {
        if (this.#loading === loading) this.#underWay = undefined;
      });
  }

  async #follow(underWay: Promise<void>): Promise<void> {
    await Promise.allSettled([underWay]);
    this.#next = undefined;
    await this.refresh();
  }

  async #load(signal: AbortSignal): Promise<void> {
    const { guard, load, cooldownMs, clock, onFailure } = this.#source;
    const loadedAtMs = clock();
    this.#attemptedAtMs = loadedAtMs;
    try {
      const { value, refreshMs } = await load(signal, this.#value);
      if (signal.aborted) throw this.closed();
      this.#value = value;
      this.#loadedAtMs = loadedAtMs;
      this.#failure = undefined;
      this.#schedule(refreshMs);
    } catch (thrown) {
      // The value was replaced: whoever waits for this reading gets the one that began afterwards.
      if (signal.aborted && !this.isClosed) return this.refresh();
      const error = new Error(`${guard}: ${reasonOf(thrown)}`, { cause: thrown });
      this.#failure = error;
      if (!this.isClosed) {
        this.#schedule(cooldownMs);
        onFailure(error, this.#value !== undefined);
      }
      throw error;
    }
  }

  #schedule(delayMs: number): void {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.refreshInBackground(), Math.min(delayMs, maxDelayMs));
    this.#timer.unref();
  }
}

// The limit of setTimeout; beyond it a timer fires at once.
const maxDelayMs = 2 ** 31 - 1;

// The global fetch says only "fetch failed"; its cause says why.
function reasonOf(thrown: unknown): string {
  if (!isError(thrown)) return "it cannot be read";
  const { message, cause } = thrown;
  const code = typeof cause === "object" && cause !== null && "code" in cause ? cause.code : undefined;
  return typeof code === "string" ? `${message} (${code})` : message;
}
