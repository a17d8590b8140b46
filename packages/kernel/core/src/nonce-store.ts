/** One use of a nonce. */
export interface NonceClaim {
  /** Nonces of different scopes never collide. The verifier gives the keyid. */
  readonly scope: string;
  /** 1 to 128 printable ASCII characters. */
  readonly nonce: string;
  /** Random identity of this request: the same claim sent twice, after a lost reply, is `fresh` both times. */
  readonly token: string;
  /** For how long the nonce must be remembered, in milliseconds on the store's clock. */
  readonly retainMs: number;
}

/**
 * Remembers nonces. `claim` is one atomic step: of any number of concurrent claims of one scope and nonce under different
 * tokens exactly one is `fresh`. It throws when it cannot remember (engine down, store full); it never evicts a live nonce.
 */
export interface NonceStore {
  /** What it stands on, in a word such as `redis`, for metrics and spans. */
  readonly engine?: string | undefined;
  claim(claim: NonceClaim): "fresh" | "seen" | Promise<"fresh" | "seen">;
}
