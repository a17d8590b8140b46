export interface RequestIdempotency {
  /** The idempotency key as the caller sent it. */
  readonly key: string;
  /** The key in the store: that of the caller behind the guard's scope, as logs and the command `keys` show it. */
  readonly storeKey: string;
  /** Grows with each attempt at the same key: a bank rail that remembers the highest can refuse an older attempt. */
  readonly fence: number;
  /** This attempt's random identity, as the store knows it. */
  readonly token: string;
  /** Aborts when another attempt may own the key, or another answer ended the request and freed it: begin no effect after that. */
  readonly signal: AbortSignal;
  /**
   * Writes `done` in the handler's own transaction, and locks the key until that ends: best as its first step. Await it if the store is
   * asynchronous. Throws, so that the transaction rolls back: a GuardError, `idempotency-lost` when another attempt has the key or it is
   * done, `idempotency-store-unavailable` when the store fails; a TypeError when the store knows no transactions. Answer 2xx after the
   * commit: a 2xx without a committed record becomes 503 and holds the key; one that left earlier leaves the key done and unpaid.
   */
  completeIn(tx: unknown): void | Promise<void>;
  /** Whether this attempt's completeIn() has committed, read from outside: tells after a lost COMMIT reply. False for a silent store. */
  committed(): Promise<boolean>;
  /**
   * Says that the effect may have happened: unless a 2xx follows, the key is held for an operator, not released. The reason has 1 to
   * 256 characters. Throws once the response has ended: too late.
   */
  hold(reason: string): void;
}
