import { type KeyObject, type SigningOptions, verify } from "node:crypto";

/** Names of the HTTP Signature Algorithms registry (RFC 9421 section 6.2.2) that this engine has. */
export type SignatureAlgorithm =
  | "ed25519"
  | "ecdsa-p256-sha256"
  | "ecdsa-p384-sha384"
  | "rsa-pss-sha512"
  | "rsa-v1_5-sha256"
  | "hmac-sha256";

/**
 * What verifies Ed25519: `native` is node:crypto, `noble` portable JavaScript, `sodium` libsodium by the optional package
 * sodium-native. All give the same verdict on every input. Other algorithms
 * are verified by node:crypto alone.
 */
export type VerificationEngine = "native" | "noble" | "sodium";

/** One signature algorithm (RFC 9421 section 3.3). Its keys were vetted when they were imported. */
export interface Algorithm {
  /** Vets a public key of this algorithm, for hmac-sha256 a secret, and returns the key to verify by. Throws a TypeError that shows nothing of it. */
  readonly vet: (key: KeyObject) => KeyObject;
  /** A key of nobody, to verify under where the keyid is unknown. */
  readonly makeDecoy: () => KeyObject;
  /** Whether `key` is a private key, for hmac-sha256 a secret, of this algorithm and of sufficient size. */
  readonly isSigningKey: (key: KeyObject) => boolean;
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
  /** The verdict of `verify` with the native engine, on libuv's thread pool but for hmac-sha256. */
  readonly verifyAsync: (key: KeyObject, data: Uint8Array, signature: Uint8Array) => Promise<boolean>;
}

/** A JSON Web Key (RFC 7517), as an object. Of its own, since Node's types have it in different places. */
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

/** How node:crypto verifies an algorithm, and what it may refuse before it does any work. */
export interface NativeVerification {
  /** The digest that is signed. */
  readonly digest: string;
  readonly options: SigningOptions;
  /** Whether the signature has the right length, and its numbers are in their range. */
  readonly isSound: (key: KeyObject, signature: Uint8Array) => boolean;
  /** Sound, and verified in place of a signature that is not, for the time alone. */
  readonly placeholder: (key: KeyObject) => Uint8Array;
}

/** Both ways of verifying by node:crypto. Each spends one verification, whatever the signature looks like. */
export function verifyNatively({
  digest,
  options,
  isSound,
  placeholder,
}: NativeVerification): Pick<Algorithm, "verify" | "verifyAsync"> {
  return {
    verify(key, data, signature) {
      const sound = isSound(key, signature);
      const matches = verify(digest, data, { key, ...options }, sound ? signature : placeholder(key));
      return sound && matches;
    },
    verifyAsync(key, data, signature) {
      const sound = isSound(key, signature);
      return new Promise((resolve, reject) => {
        const verified = sound ? signature : placeholder(key);
        verify(digest, data, { key, ...options }, verified, (error, matches) => {
          if (error === null) resolve(sound && matches);
          else reject(error);
        });
      });
    },
  };
}
