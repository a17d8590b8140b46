import { hash } from "node:crypto";
import { GuardError } from "@countersign/core";
import { MessageSignatureError, parseByteSequenceDictionary } from "@countersign/http-message-signatures";
import type { ContentDigestCode } from "./codes.ts";
import type { DigestPolicy } from "./options.ts";

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
  if (!(bytes instanceof Uint8Array)) {
    throw new TypeError("createContentDigest: bytes must be a Buffer or Uint8Array");
  }
  if (!isDigestAlgorithm(algorithm)) {
    throw new TypeError('createContentDigest: algorithm must be "sha-256" or "sha-512"');
  }
  return `${algorithm}=:${computeDigest(bytes, algorithm)}:`;
}

/** The value of the Want-Content-Digest field (RFC 9530 section 4) that asks for `algorithms`, the first one most. */
export function wantContentDigest(algorithms: readonly DigestAlgorithm[]): string {
  return algorithms.map((algorithm, index) => `${algorithm}=${10 - index}`).join(", ");
}

/** The digests of known algorithms that a request carries; at least one of them satisfies the policy. */
export type ReceivedDigests = ReadonlyMap<DigestAlgorithm, Buffer>;

/**
 * Reads the lines of the Content-Digest field. Undefined when there is none and the policy allows that; throws a GuardError
 * for anything else that does not hold a digest to check. Needs no body.
 */
export function parseContentDigest(
  lines: readonly string[],
  policy: DigestPolicy,
): ReceivedDigests | undefined {
  if (lines.length === 0 && !policy.required) return undefined;
  // RFC 9110 section 5.3: the lines of a list-based field are one value.
  const fieldValue = lines.join(", ");
  if (fieldValue.trim() === "") throw refusal(policy, "missing", "the request has no Content-Digest");

  const digests = knownDigests(parseMembers(fieldValue, policy), policy);
  // RFC 9530 section 6.6: a deprecated algorithm must not be all that the sender offers.
  if (!policy.algorithms.some((algorithm) => digests.has(algorithm))) {
    throw refusal(policy, "unsupported", "Content-Digest has no digest of an accepted algorithm");
  }
  return digests;
}

/** Why no digest of a request counts. */
type RefusalReason = "missing" | "invalid" | "unsupported" | "mismatch";

/** The refusal with the code `content-digest-<reason>`, and the algorithms that would have been accepted. */
export function refusal(
  policy: DigestPolicy,
  reason: RefusalReason,
  message: string,
  cause?: unknown,
): GuardError<ContentDigestCode> {
  return new GuardError<ContentDigestCode>({
    status: policy.status,
    code: `content-digest-${reason}`,
    message,
    headers: { "Want-Content-Digest": wantContentDigest(policy.algorithms) },
    cause,
  });
}

function parseMembers(fieldValue: string, policy: DigestPolicy): ReadonlyMap<string, Buffer> {
  try {
    return parseByteSequenceDictionary(fieldValue, "Content-Digest");
  } catch (error) {
    if (!(error instanceof MessageSignatureError)) throw error;
    throw refusal(policy, "invalid", "Content-Digest is no dictionary of byte sequences", error);
  }
}

function knownDigests(members: ReadonlyMap<string, Buffer>, policy: DigestPolicy): ReceivedDigests {
  const digests = new Map<DigestAlgorithm, Buffer>();
  for (const [algorithm, digest] of members) {
    if (!isDigestAlgorithm(algorithm)) continue;
    if (digest.length !== digestLengths.get(algorithm)) {
      throw refusal(policy, "invalid", `Content-Digest has a ${algorithm} digest of the wrong length`);
    }
    digests.set(algorithm, digest);
  }
  return digests;
}
