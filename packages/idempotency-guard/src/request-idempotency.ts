import { isPromiseLike } from "@countersign/guard";
import type { Attempt } from "./attempt.ts";
import { callStore } from "./call-store.ts";
import type { Lease } from "./lease.ts";
import type { ResolvedOptions } from "./options.ts";
import { idempotencyLost, storeUnavailable } from "./refusals.ts";
import type { Awaitable, IdempotencyOwnership } from "./store.ts";

/** What the handler of a guarded request gets as `req.idempotency`. */
export interface RequestIdempotency {
  readonly key: string;
  /** Grows with each attempt at the same key: a bank rail that remembers the highest can refuse an older attempt. */
  readonly fence: number;
  /** The random identity of this attempt, as the store knows it. */
  readonly token: string;
  /** Aborts when another attempt may own the key by now: do not begin an effect after that. */
  readonly signal: AbortSignal;
  /**
   * Writes `done` inside the handler's own transaction; a promise when the store is asynchronous, to be awaited before COMMIT.
   * Throws a GuardError when another attempt owns the key (`idempotency-lost`) or the store fails
   * (`idempotency-store-unavailable`), so that the transaction rolls back; a TypeError when the store knows none. Answer 2xx after the commit: a 2xx without a committed record becomes 503.
   */
  completeIn(tx: unknown): void | Promise<void>;
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

/** What the handler has said about its attempt, for the settlement. */
export interface Intent {
  /** completeIn() was called: the record is the transaction's business. */
  inTransaction: boolean;
  holdReason: string | undefined;
  responseEnded: boolean;
}

const maxReasonLength = 256;

/** A class for the sake of `signal`: V8 takes ten times as long for an object literal with a getter. */
export class AttemptHandle implements RequestIdempotency {
  readonly key: string;
  readonly token: string;
  readonly fence: number;
  readonly #lease: Lease;
  readonly #intent: Intent;
  readonly #options: ResolvedOptions;

  constructor(
    { key, token }: Attempt,
    fence: number,
    { lease, intent, options }: { lease: Lease; intent: Intent; options: ResolvedOptions },
  ) {
    this.key = key;
    this.token = token;
    this.fence = fence;
    this.#lease = lease;
    this.#intent = intent;
    this.#options = options;
  }

  get signal(): AbortSignal {
    return this.#lease.signal;
  }

  // Functions of their own, so that a handler can take them out of the object.
  readonly completeIn = (tx: unknown): Awaitable<void> => {
    const { store } = this.#options;
    if (store.completeIn === undefined) {
      throw new TypeError("req.idempotency.completeIn: this store has no transactions; answer 2xx instead");
    }
    this.#intent.inTransaction = true;
    return completeIn(() => store.completeIn?.(tx, this.key, this.token) ?? "lost", this.#options);
  };

  readonly hold = (reason: string): void => {
    if (typeof reason !== "string" || reason === "") {
      throw new TypeError("req.idempotency.hold: the reason must be a string that is not empty");
    }
    if (this.#intent.responseEnded) throw new Error("req.idempotency.hold: the response has ended already");
    this.#intent.holdReason = reason.slice(0, maxReasonLength);
  };
}

/** Every throw makes the handler's transaction roll back; the next attempt finds the key as it was. */
function completeIn(call: () => Awaitable<IdempotencyOwnership>, options: ResolvedOptions): Awaitable<void> {
  let ownership: Awaitable<IdempotencyOwnership>;
  try {
    ownership = callStore(call, options.storeTimeoutMs);
  } catch (error) {
    throw failure(error, options);
  }
  if (isPromiseLike(ownership)) return completeInLater(ownership, options);
  assertOwned(ownership, options);
}

async function completeInLater(
  pending: Promise<IdempotencyOwnership>,
  options: ResolvedOptions,
): Promise<void> {
  let ownership: IdempotencyOwnership;
  try {
    ownership = await pending;
  } catch (error) {
    throw failure(error, options);
  }
  assertOwned(ownership, options);
}

// A TypeError says that `tx` is no transaction of this store: the handler's mistake, which no retry mends.
function failure(error: unknown, options: ResolvedOptions): unknown {
  return error instanceof TypeError ? error : storeUnavailable(error, options);
}

function assertOwned(ownership: IdempotencyOwnership, options: ResolvedOptions): void {
  if (ownership !== "ok") throw idempotencyLost(options.retryAfterSeconds);
}
