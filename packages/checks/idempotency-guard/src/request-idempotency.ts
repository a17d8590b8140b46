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
   * Says that the effect may have happened: unless a 2xx follows, the key is held for an operator, not released. The reason has 1 to
   * 256 characters. Throws once the response has ended: too late.
   */
  hold(reason: string): void;
}
