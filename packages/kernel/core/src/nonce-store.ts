export interface NonceClaim {
  /** Nonces of different scopes never collide. The verifier gives the keyid. */
  readonly scope: string;
  /** 1 to 128 printable ASCII characters. */
  readonly nonce: string;
  /** Random identity of this request: the same claim sent twice, after a lost reply, is `fresh` both times. */
  readonly token: string;
  /** How long to remember the nonce, in milliseconds on the store's clock. */
  readonly retainMs: number;
}

/**
 * Remembers nonces. Of concurrent claims of one scope and nonce under different tokens, exactly one is `fresh`: `claim` is atomic.
 * Throws when it cannot remember (engine down, store full); never evicts a live nonce.
 */
export interface NonceStore {
  /** One word for metrics and spans, such as `redis`. */
  readonly engine?: string | undefined;
  claim(claim: NonceClaim): "fresh" | "seen" | Promise<"fresh" | "seen">;
}
