import type { Attempt } from "./attempt.ts";
import type { Run } from "./run.ts";
import type { Awaitable } from "./store.ts";

/** What the handler of a guarded request gets as `req.idempotency`. */
export interface RequestIdempotency {
  readonly key: string;
  /** Grows with each attempt at the same key: a bank rail that remembers the highest can refuse an older attempt. */
  readonly fence: number;
  /** The random identity of this attempt, as the store knows it. */
  readonly token: string;
  /**
   * Aborts when another attempt may own the key by now, also when somebody else has answered in the handler's place and the key
   * is given back: do not begin an effect after that.
   */
  readonly signal: AbortSignal;
  /**
   * Writes `done` inside the handler's own transaction, and locks the key until that ends: best as its first step. A promise when
   * the store is asynchronous, to be awaited. Throws a GuardError when the key is not this attempt's any more, or is done already
   * (`idempotency-lost`), or when the store fails (`idempotency-store-unavailable`), so that the transaction rolls back; a
   * TypeError when the store knows none. Answer 2xx after the commit: a 2xx without a committed record becomes 503, and holds
   * the key.
   */
  completeIn(tx: unknown): void | Promise<void>;
  /**
   * Whether this attempt's own completeIn() has committed, read from outside of any transaction: tells after a COMMIT whose answer
   * was lost. False also when the store does not answer.
   */
  committed(): Promise<boolean>;
  /**
   * Says that the effect may have happened from here on: unless the answer is a 2xx, the key is held for an operator instead
   * of being released. The reason has 1 to 256 characters. Throws once the response has ended: too late to be obeyed.
   */
  hold(reason: string): void;
}

declare global {
  namespace Express {
    interface Request {
      /** The attempt that idempotencyGuard() admitted. */
      idempotency?: RequestIdempotency | undefined;
    }
  }
}

/** A class for the sake of `signal`: V8 takes ten times as long for an object literal with a getter. */
export class AttemptHandle implements RequestIdempotency {
  readonly key: string;
  readonly token: string;
  readonly fence: number;
  readonly #run: Run;

  constructor({ key, token }: Attempt, run: Run) {
    this.key = key;
    this.token = token;
    this.fence = run.owned.fence;
    this.#run = run;
  }

  get signal(): AbortSignal {
    return this.#run.owned.signal;
  }

  // Functions of their own, so that a handler can take them out of the object.
  readonly completeIn = (tx: unknown): Awaitable<void> => this.#run.owned.completeIn(tx);

  readonly committed = (): Promise<boolean> => this.#run.owned.isDone();

  readonly hold = (reason: string): void => {
    if (typeof reason !== "string" || reason === "") {
      throw new TypeError("req.idempotency.hold: the reason must be a string that is not empty");
    }
    this.#run.hold(reason);
  };
}
