import type { KeyObject } from "node:crypto";

/** Names of the HTTP Signature Algorithms registry (RFC 9421 section 6.2.2) that this engine has. */
export type SignatureAlgorithm = "ed25519";

/** What verifies: `native` is node:crypto, `noble` is portable JavaScript; both give the same verdict on every input. */
export type VerificationEngine = "native" | "noble";

/** One signature algorithm (RFC 9421 section 3.3). Its keys were vetted when they were imported. */
export interface Algorithm {
  /** Length of a signature under `key`, in bytes. */
  readonly signatureLength: (key: KeyObject) => number;
  readonly sign: (key: KeyObject, data: Uint8Array) => Uint8Array;
  /**
   * Verifies on this thread. One verification is spent whatever the signature looks like, so that its form does not make a known
   * keyid and an unknown one differ in time.
   */
  readonly verify: (
    key: KeyObject,
    data: Uint8Array,
    signature: Uint8Array,
    engine: VerificationEngine,
  ) => boolean;
  /** The verdict of `verify` with the native engine, on libuv's thread pool. */
  readonly verifyAsync: (key: KeyObject, data: Uint8Array, signature: Uint8Array) => Promise<boolean>;
}
