import { AsyncResource } from "node:async_hooks";
import { types } from "node:util";

/** A value that was loaded, and after how many milliseconds it is loaded again in the background. */
interface Loaded<Value> {
  readonly value: Value;
  readonly refreshMs: number;
}

/** The source of a value that is replaced whole. */
export interface RefreshSource<Value> {
  /** Whose it is, in errors. */
  readonly guard: string;
  /** Rejects when there is no usable value. `previous` is the one in use. */
  readonly load: (signal: AbortSignal, previous: Value | undefined) => Promise<Loaded<Value>>;
  /** After an attempt, no request causes another one for as long. */
  readonly cooldownMs: number;
  /** Milliseconds that never go back. */
  readonly clock: () => number;
  /** Called with why an attempt has failed, and whether there is a value. */
  readonly onFailure: (error: Error, hasValue: boolean) => void;
  /** Why nothing can be had after close(): `the key store is closed`. */
  readonly closedBecause: string;
  readonly onClose?: (() => void) | undefined;
}

/**
 * A value that refreshes itself: one load at a time, by a timer that keeps no process alive; the last good one is kept over failures.
 * Its reader decides by {@link RefreshingValue.ageMs} for how long an old one may be used.
 */
export class RefreshingValue<Value> {
  readonly #source: RefreshSource<Value>;
  readonly #closing = new AbortController();
  // What is started here would keep the asynchronous context of some request otherwise.
  readonly #outside = new AsyncResource("countersign.refreshing-value");
  #value: Value | undefined;
  #loadedAtMs = 0;
  #attemptedAtMs = -Infinity;
  #failure: Error | undefined;
  #underWay: Promise<void> | undefined;
  #timer: NodeJS.Timeout | undefined;

  constructor(source: RefreshSource<Value>) {
    this.#source = source;
  }

  /** The last good one; undefined before there is one. */
  get value(): Value | undefined {
    return this.#value;
  }

  /** Why the last attempt has failed; undefined where it has not. */
  get failure(): Error | undefined {
    return this.#failure;
  }

  get isClosed(): boolean {
    return this.#closing.signal.aborted;
  }

  /** Since the value was asked for: what happened since is not in it. */
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

  /** Resolves when there is a value; rejects when the first one cannot be had. */
  async ready(): Promise<void> {
    if (this.#value === undefined) await this.refresh();
  }

  /** Reads now, or joins the reading under way. Rejects when there is no usable value; the last good one stays. */
  refresh(): Promise<void> {
    if (this.isClosed) return Promise.reject(this.closed());
    this.#underWay ??= this.#outside
      .runInAsyncScope(() => this.#load())
      .finally(() => {
        this.#underWay = undefined;
      });
    return this.#underWay;
  }

  refreshInBackground(): void {
    // #load has reported why it failed.
    void this.refresh().catch(() => {});
  }

  /** Ends the timer and what is under way. */
  close(): void {
    if (this.isClosed) return;
    clearTimeout(this.#timer);
    this.#closing.abort();
    this.#source.onClose?.();
  }

  /** The error after close(). */
  closed(): Error {
    return new Error(`${this.#source.guard}: ${this.#source.closedBecause}`);
  }

  async #load(): Promise<void> {
    const { guard, load, cooldownMs, clock, onFailure } = this.#source;
    const loadedAtMs = clock();
    this.#attemptedAtMs = loadedAtMs;
    try {
      const { value, refreshMs } = await load(this.#closing.signal, this.#value);
      if (this.isClosed) throw this.closed();
      this.#value = value;
      this.#loadedAtMs = loadedAtMs;
      this.#failure = undefined;
      this.#schedule(refreshMs);
    } catch (thrown) {
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

// What setTimeout takes; beyond, it would fire at once.
const maxDelayMs = 2 ** 31 - 1;

// The global fetch says "fetch failed", and why in its cause.
function reasonOf(thrown: unknown): string {
  if (!types.isNativeError(thrown)) return "it cannot be read";
  const { message, cause } = thrown;
  const code = typeof cause === "object" && cause !== null && "code" in cause ? cause.code : undefined;
  return typeof code === "string" ? `${message} (${code})` : message;
}
