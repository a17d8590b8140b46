import { hash } from "node:crypto";
import { GuardError } from "@countersign/core";
import { type Given } from "@countersign/core/door";
import { MessageSignatureError } from "@countersign/http-message-signatures";
import {
  parseByteSequenceDictionary,
  parseDictionary,
  type Member,
} from "@countersign/http-message-signatures/door";
import type { ContentDigestCode } from "./codes.ts";

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

/** The digests of known algorithms that a message carries; at least one of them satisfies the policy. */
export type ReceivedDigests = ReadonlyMap<DigestAlgorithm, Buffer>;

/** What a digest field must satisfy, as options. */
export interface ContentDigestPolicyOptions {
  /**
   * At least one digest must be of these algorithms, the preferred one first. A digest of another known algorithm is checked
   * too, but does not suffice. Default `["sha-256", "sha-512"]`.
   */
  readonly algorithms?: readonly DigestAlgorithm[] | undefined;
  /** Refuse a request without the field. With false only a field that is present is checked. Default true. */
  readonly required?: boolean | undefined;
  /** The status of a refusal, 400 to 499. Default 401. */
  readonly status?: number | undefined;
}

/** What a digest field must satisfy. */
export type DigestPolicy = Given<ContentDigestPolicyOptions>;

/** Which field is checked, and by what policy. */
export interface DigestCheck {
  readonly field: "Content-Digest" | "Repr-Digest";
  readonly policy: DigestPolicy;
}

/**
 * Reads the lines of a digest field. Undefined when there is none and the policy allows that; throws a GuardError for anything else
 * that does not hold a digest to check. Needs no body.
 */
export function parseDigests(lines: readonly string[], check: DigestCheck): ReceivedDigests | undefined {
  const { field, policy } = check;
  if (lines.length === 0 && !policy.required) return undefined;
  // RFC 9110 section 5.3: the lines of a list-based field are one value.
  const fieldValue = lines.join(", ");
  if (fieldValue.trim() === "") throw refusal(check, "missing", `the message has no ${field}`);

  const digests = knownDigests(parseMembers(fieldValue, check), check);
  // RFC 9530 section 6.6: a deprecated algorithm must not be all that the sender offers.
  if (!policy.algorithms.some((algorithm) => digests.has(algorithm))) {
    throw refusal(check, "unsupported", `${field} has no digest of an accepted algorithm`);
  }
  return digests;
}

/** Compares every known digest: a wrong one beside a right one is a sign of tampering, or of a broken sender. */
export function assertDigests(digests: ReceivedDigests, bytes: Uint8Array, check: DigestCheck): void {
  for (const [algorithm, digest] of digests) {
    // Whoever knows the body knows its digest: nothing to gain from the time of the comparison.
    if (computeDigest(bytes, algorithm) !== digest.toString("base64")) {
      throw refusal(check, "mismatch", `the ${algorithm} digest of ${check.field} does not match the body`);
    }
  }
}

/** Why no digest of a message counts. */
type RefusalReason = "missing" | "invalid" | "unsupported" | "mismatch";

// With the algorithms that would have been accepted.
function refusal(
  { field, policy }: DigestCheck,
  reason: RefusalReason,
  message: string,
  cause?: unknown,
): GuardError<ContentDigestCode> {
  return new GuardError<ContentDigestCode>({
    status: policy.status,
    code: field === "Content-Digest" ? `content-digest-${reason}` : `repr-digest-${reason}`,
    message,
    headers: { [`Want-${field}`]: wantContentDigest(policy.algorithms) },
    cause,
  });
}

function parseMembers(fieldValue: string, check: DigestCheck): ReadonlyMap<string, Buffer> {
  try {
    return parseByteSequenceDictionary(fieldValue, check.field);
  } catch (error) {
    if (!(error instanceof MessageSignatureError)) throw error;
    throw refusal(check, "invalid", `${check.field} is no dictionary of byte sequences`, error);
  }
}

function knownDigests(members: ReadonlyMap<string, Buffer>, check: DigestCheck): ReceivedDigests {
  const digests = new Map<DigestAlgorithm, Buffer>();
  for (const [algorithm, digest] of members) {
    if (!isDigestAlgorithm(algorithm)) continue;
    if (digest.length !== digestLengths.get(algorithm)) {
      throw refusal(check, "invalid", `${check.field} has a ${algorithm} digest of the wrong length`);
    }
    digests.set(algorithm, digest);
  }
  return digests;
}

/**
 * The algorithm that a peer prefers of those `offered`, by the lines of its Want-Content-Digest or Want-Repr-Digest field (RFC 9530
 * section 4); of equal ones the first offered. Undefined when it wants none of them. A field that is malformed is a wish that nobody
 * can read: undefined as well.
 */
export function preferredDigestAlgorithm(
  lines: readonly string[],
  offered: readonly DigestAlgorithm[] = ["sha-256", "sha-512"],
): DigestAlgorithm | undefined {
  const wanted = parseWanted(lines);
  let preferred: DigestAlgorithm | undefined;
  for (const algorithm of offered.filter(isDigestAlgorithm)) {
    const weight = wanted.get(algorithm) ?? 0;
    if (weight > (preferred === undefined ? 0 : (wanted.get(preferred) ?? 0))) preferred = algorithm;
  }
  return preferred;
}

function parseWanted(lines: readonly string[]): ReadonlyMap<string, number> {
  const wanted = new Map<string, number>();
  try {
    for (const [algorithm, member] of parseDictionary(lines.join(", "), "Want-Content-Digest")) {
      const weight = weightOf(member);
      if (weight === undefined) return new Map();
      wanted.set(algorithm, weight);
    }
  } catch (error) {
    if (!(error instanceof MessageSignatureError)) throw error;
    return new Map();
  }
  return wanted;
}

// An integer from 0, not acceptable, to 10, most preferred.
function weightOf(member: Member): number | undefined {
  if (!("item" in member) || member.item.type !== "integer") return undefined;
  const { value } = member.item;
  return value >= 0 && value <= 10 ? value : undefined;
}
