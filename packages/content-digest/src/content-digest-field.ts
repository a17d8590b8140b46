import { hash } from "node:crypto";

/** The algorithms that RFC 9530 section 5 calls "active". */
export type DigestAlgorithm = "sha-256" | "sha-512";

/** Bytes of a digest by the name of its algorithm; any other name is unknown, or deprecated and treated as unknown. */
export const digestLengths: ReadonlyMap<string, number> = new Map<DigestAlgorithm, number>([
  ["sha-256", 32],
  ["sha-512", 64],
]);

/** Whether `algorithm` is one that this package computes. */
export function isDigestAlgorithm(algorithm: unknown): algorithm is DigestAlgorithm {
  return typeof algorithm === "string" && digestLengths.has(algorithm);
}

/** The digest of `bytes` in base64. For the size of a payout this costs a quarter of `createHash` and a Buffer. */
export function computeDigest(bytes: Uint8Array, algorithm: DigestAlgorithm): string {
  return hash(algorithm === "sha-256" ? "sha256" : "sha512", bytes, "base64");
}

/**
 * For senders: the value of the Content-Digest field for a body (RFC 9530 section 2), by default with sha-256. `bytes` must be
 * what goes on the wire. Throws a TypeError for anything but bytes: a string has no digest before it is encoded.
 */
export function createContentDigest(bytes: Uint8Array, algorithm: DigestAlgorithm = "sha-256"): string {
  return createDigest("createContentDigest", bytes, algorithm);
}

/**
 * For senders: the value of the Repr-Digest field (RFC 9530 section 3). `representation` is the whole of the selected
 * representation, as its Content-Encoding encodes it, whatever part of it a message carries.
 */
export function createReprDigest(representation: Uint8Array, algorithm: DigestAlgorithm = "sha-256"): string {
  return createDigest("createReprDigest", representation, algorithm);
}

function createDigest(owner: string, bytes: Uint8Array, algorithm: DigestAlgorithm): string {
  if (!(bytes instanceof Uint8Array)) {
    throw new TypeError(`${owner}: bytes must be a Buffer or Uint8Array`);
  }
  if (!isDigestAlgorithm(algorithm)) {
    throw new TypeError(`${owner}: algorithm must be "sha-256" or "sha-512"`);
  }
  return `${algorithm}=:${computeDigest(bytes, algorithm)}:`;
}

/** The value of Want-Content-Digest or Want-Repr-Digest (RFC 9530 section 4) that asks for `algorithms`, the first one most. */
export function wantContentDigest(algorithms: readonly DigestAlgorithm[]): string {
  return algorithms.map((algorithm, index) => `${algorithm}=${10 - index}`).join(", ");
}
