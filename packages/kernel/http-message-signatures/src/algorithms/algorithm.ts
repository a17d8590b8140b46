import type { KeyObject } from "node:crypto";

/** Algorithms of RFC 9421 section 6.2.2 that this engine has. */
export type SignatureAlgorithm =
  | "ed25519"
  | "ecdsa-p256-sha256"
  | "ecdsa-p384-sha384"
  | "rsa-pss-sha512"
  | "rsa-v1_5-sha256"
  | "hmac-sha256";

/** What verifies Ed25519: node:crypto, portable JavaScript or sodium-native, with one verdict. Only node:crypto verifies the others. */
export type VerificationEngine = "native" | "noble" | "sodium";

/** One signature algorithm (RFC 9421 section 3.3). Its keys were vetted when they were imported. */
export interface Algorithm {
  /** Vets a public key, for hmac-sha256 a secret, and returns the key to verify by. Throws a TypeError that shows nothing of it. */
  readonly vet: (key: KeyObject) => KeyObject;
  /** Makes a key of nobody, to verify under where the keyid is unknown. */
  readonly makeDecoy: () => KeyObject;
  /** Whether `key` is a private key, for hmac-sha256 a secret, of this algorithm and of sufficient size. */
  readonly isSigningKey: (key: KeyObject) => boolean;
  readonly sign: (key: KeyObject, data: Uint8Array) => Uint8Array;
  /** Verifies on this thread. Every signature costs one verification: its form must not tell known keyids from unknown ones by time. */
  readonly verify: (
    key: KeyObject,
    data: Uint8Array,
    signature: Uint8Array,
    engine: VerificationEngine,
  ) => boolean;
  /** The verdict of `verify` with the native engine, on libuv's thread pool but for hmac-sha256. */
  readonly verifyAsync: (key: KeyObject, data: Uint8Array, signature: Uint8Array) => Promise<boolean>;
}

/** A JSON Web Key (RFC 7517), as an object. Node's types have it in different places. */
export type Jwk =
  | {
      readonly kty?: string | undefined;
      readonly crv?: string | undefined;
      readonly x?: string | undefined;
      readonly alg?: string | undefined;
      readonly kid?: string | undefined;
      readonly use?: string | undefined;
      readonly key_ops?: readonly string[] | undefined;
    }
  | Readonly<Record<string, unknown>>;
