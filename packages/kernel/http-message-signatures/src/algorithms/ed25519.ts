import { generateKeyPairSync, sign, verify, type KeyObject, type SigningOptions } from "node:crypto";
import { createRequire } from "node:module";
import { ed25519 } from "@noble/curves/ed25519.js";
import { keyError } from "../verification-key.ts";
import type { Algorithm, VerificationEngine } from "./algorithm.ts";

/** Length of an Ed25519 signature in bytes (RFC 8032 section 5.1.6). */
export const ed25519SignatureLength = 64;

// The first signature of RFC 8032 section 7.1.
const rfcSignature = Buffer.from(
  "e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e06522490155" +
    "5fb8821590a33bacc61e39701cf9b46bd25bf5f0595bbe24655141438e7a100b",
  "hex",
);

const native = verifyNatively({ digest: null, isSound: isSoundSignature, placeholder: () => rfcSignature });

/**
 * Verifies by the cofactorless equation of RFC 8032 section 5.1.7. Stricter than the RFC: refuses an R of small order or non-canonical
 * encoding, on which libraries disagree. Every signature costs one verification.
 */
export function verifyEd25519(
  key: KeyObject,
  data: Uint8Array,
  signature: Uint8Array,
  engine: VerificationEngine = "native",
): boolean {
  if (engine === "native") return native.verify(key, data, signature);
  const sound = isSoundSignature(signature);
  return others[engine](rawPublicKey(key), data, sound ? signature : rfcSignature) && sound;
}

/** The verdict of {@link verifyEd25519} with the native engine, on libuv's thread pool. */
export const verifyEd25519Async: Algorithm["verifyAsync"] = native.verifyAsync;

/** RFC 9421 section 3.3.6. */
export const ed25519Algorithm: Algorithm = {
  vet(key) {
    assertPrimeOrder(rawPublicKey(key));
    return key;
  },
  makeDecoy: () => generateKeyPairSync("ed25519").publicKey,
  isSigningKey: ({ type, asymmetricKeyType }) => type === "private" && asymmetricKeyType === "ed25519",
  sign: (key, data) => sign(null, data, key),
  verify: verifyEd25519,
  verifyAsync: verifyEd25519Async,
};

type Verify = (publicKey: Uint8Array, data: Uint8Array, signature: Uint8Array) => boolean;

const others: Readonly<Record<Exclude<VerificationEngine, "native">, Verify>> = {
  noble: verifyByNoble,
  // By the cofactorless equation; by itself it refuses an S that is not reduced and points of small order.
  sodium: (publicKey, data, signature) =>
    loadSodium().crypto_sign_verify_detached(signature, data, publicKey),
};

/** Loads what an engine needs before the first request does. Throws a TypeError for an engine that is not there. */
export function loadEngine(engine: VerificationEngine): void {
  if (engine !== "native" && !Object.hasOwn(others, engine))
    throw new TypeError("the engine is none of native, noble and sodium");
  if (engine === "sodium") loadSodium();
}

interface Sodium {
  crypto_sign_verify_detached(signature: Uint8Array, message: Uint8Array, publicKey: Uint8Array): boolean;
}

let sodium: Sodium | undefined;

function loadSodium(): Sodium {
  if (sodium !== undefined) return sodium;
  const require = createRequire(import.meta.url);
  try {
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the package has no types
    sodium = require("sodium-native") as Sodium;
    return sodium;
  } catch (cause) {
    const message = 'the engine "sodium" needs the package sodium-native: npm install sodium-native@5.1.0';
    throw new TypeError(message, { cause });
  }
}

// noble multiplies by the cofactor; on a torsion-free R and key that equation is the cofactorless one.
function verifyByNoble(publicKey: Uint8Array, data: Uint8Array, signature: Uint8Array): boolean {
  const sound = isTorsionFree(signature.subarray(0, 32));
  return ed25519.verify(sound ? signature : rfcSignature, data, publicKey, { zip215: false }) && sound;
}

function isTorsionFree(point: Uint8Array): boolean {
  try {
    return ed25519.Point.fromBytes(point, false).isTorsionFree();
  } catch {
    return false;
  }
}

// What a library may refuse before it does any work, and what libraries do not agree about.
function isSoundSignature(signature: Uint8Array): boolean {
  return (
    signature.length === ed25519SignatureLength &&
    hasSoundCommitment(signature) &&
    hasReducedScalar(signature)
  );
}

// Numbers are little-endian on the wire. Turned round, they compare as bytes.
// oxlint-disable-next-line unicorn/no-array-reverse -- of a copy
const numberOf = (bytes: Uint8Array): Buffer => Buffer.from(bytes).reverse();
const numberOfHex = (hex: string): Buffer => numberOf(Buffer.from(hex, "hex"));

// The order of the base point, 2^252 + 27742317777372353535851937790883648493 (RFC 8032 section 5.1).
const order = numberOfHex("edd3f55c1a631258d69cf7a2def9de1400000000000000000000000000000010");

// S < L (RFC 8032 section 5.1.7).
function hasReducedScalar(signature: Uint8Array): boolean {
  return Buffer.compare(numberOf(signature.subarray(32)), order) < 0;
}

// p = 2^255 - 19 (RFC 8032 section 5.1).
const prime = numberOfHex(`ed${"ff".repeat(30)}7f`);

// The y coordinates of the eight points of small order, without the sign of x (RFC 8032 section 5.1.2).
const smallOrderY: readonly Buffer[] = [
  "0000000000000000000000000000000000000000000000000000000000000000",
  "0100000000000000000000000000000000000000000000000000000000000000",
  "ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
  "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05",
  "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a",
].map(numberOfHex);

function hasSoundCommitment(signature: Uint8Array): boolean {
  const y = numberOf(signature.subarray(0, 32));
  y.writeUInt8(y.readUInt8(0) & 0x7f);
  return Buffer.compare(y, prime) < 0 && !smallOrderY.some((small) => small.equals(y));
}

const rawKeys = new WeakMap<KeyObject, Uint8Array>();

/** The raw 32 bytes of a key (RFC 8410 section 4), taken out of it once. */
export function rawPublicKey(key: KeyObject): Uint8Array {
  let bytes = rawKeys.get(key);
  if (bytes === undefined) {
    bytes = key.export({ format: "der", type: "spki" }).subarray(-32);
    rawKeys.set(key, bytes);
  }
  return bytes;
}

/** Throws a TypeError unless the bytes are a canonical point of prime order. */
function assertPrimeOrder(bytes: Uint8Array): void {
  let sound: boolean;
  try {
    const point = ed25519.Point.fromBytes(bytes, false);
    sound = !point.isSmallOrder() && point.isTorsionFree();
  } catch {
    throw keyError(
      "the bytes are no canonical Ed25519 point: damaged, or those of a private key; give the public key",
    );
  }
  if (!sound) throw keyError("the point is not of prime order: signatures under it can be forged");
}

/** How node:crypto verifies this algorithm, ECDSA and RSA, and what it may refuse before it does any work. */
interface NativeVerification {
  /** The digest that is signed; null where the algorithm has its own. */
  readonly digest: string | null;
  readonly options?: SigningOptions;
  /** Whether the signature has the right length, and its numbers are in their range. */
  readonly isSound: (signature: Uint8Array, key: KeyObject) => boolean;
  /** A sound signature, verified in place of one that is not, for the time alone. */
  readonly placeholder: (key: KeyObject) => Uint8Array;
}

/** Makes both ways of verifying by node:crypto. Each spends one verification, whatever the signature looks like. */
export function verifyNatively({ digest, options, isSound, placeholder }: NativeVerification): Pick<
  Algorithm,
  "verifyAsync"
> & {
  readonly verify: (key: KeyObject, data: Uint8Array, signature: Uint8Array) => boolean;
} {
  const inputOf = (key: KeyObject): KeyObject | (SigningOptions & { key: KeyObject }) =>
    options === undefined ? key : { key, ...options };
  return {
    verify(key, data, signature) {
      const sound = isSound(signature, key);
      return verify(digest, data, inputOf(key), sound ? signature : placeholder(key)) && sound;
    },
    verifyAsync(key, data, signature) {
      const sound = isSound(signature, key);
      return new Promise((resolve, reject) => {
        verify(digest, data, inputOf(key), sound ? signature : placeholder(key), (error, matches) => {
          if (error === null) resolve(matches && sound);
          else reject(error);
        });
      });
    },
  };
}
