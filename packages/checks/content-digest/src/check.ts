import { hash } from "node:crypto";
import { createRequestFact, GuardError, type ReceivedRequest, type RequestFact } from "@countersign/core";
import {
  capturedRawBody,
  fieldLines,
  readOptions,
  type HeaderLines,
  type ReadOptions,
} from "@countersign/core/internal";
import { MessageSignatureError } from "@countersign/http-message-signatures";
import { parseByteSequenceDictionary } from "@countersign/http-message-signatures/internal";
import { readBody } from "@countersign/raw-body";
import {
  isDigestAlgorithm,
  policyTable,
  type ContentDigestPolicyOptions,
  type DigestAlgorithm,
  type DigestPolicy,
  type table,
} from "./options.ts";

/** Refusals of the body itself are in RawBodyCode. */
export type ContentDigestCode =
  | "content-digest-invalid"
  | "content-digest-mismatch"
  | "content-digest-missing"
  | "content-digest-unsupported"
  | "repr-digest-invalid"
  | "repr-digest-mismatch"
  | "repr-digest-missing"
  | "repr-digest-unsupported";

/** By known algorithms; at least one digest satisfies the policy. */
type ReceivedDigests = ReadonlyMap<DigestAlgorithm, Buffer>;

interface VerifiedDigests {
  readonly bytes: Uint8Array;
  readonly digests: ReceivedDigests;
}

const verified: RequestFact<VerifiedDigests> = createRequestFact();

/**
 * Checks Content-Digest (RFC 9530) against `bytes`, the body as received. Returns the digests that matched; undefined when the field is
 * missing and not required. Throws a GuardError with `status`, default 401. A second check of the same request computes nothing.
 */
export function verifyContentDigest(
  request: HeaderLines,
  bytes: Uint8Array,
  options: ContentDigestPolicyOptions = {},
): ReceivedDigests | undefined {
  return verifyByPolicy(request, bytes, readOptions("verifyContentDigest", policyTable, options));
}

/** Whether Content-Digest matched the body; false without the field. */
export function hasVerifiedContentDigest(subject: object): boolean {
  return verified.get(subject) !== undefined;
}

/** The body's digest by this algorithm, if Content-Digest had it and it matched. */
export function verifiedDigest(subject: object, algorithm: DigestAlgorithm): Buffer | undefined {
  return verified.get(subject)?.digests.get(algorithm);
}

/** Checks the field before the body is read, so that nothing is read in vain. */
export async function checkContentDigest(
  request: ReceivedRequest,
  { limit, ...policy }: ReadOptions<typeof table>,
): Promise<void> {
  const captured = capturedRawBody(request);
  if (captured !== undefined) {
    verifyByPolicy(request, captured, policy);
    return;
  }
  const check = { field: "Content-Digest", policy } as const;
  const digests = parseDigests(request, check);
  if (digests !== undefined) match(request, await readBody(request, limit), { digests, check });
}

export function verifyByPolicy(
  request: HeaderLines,
  bytes: Uint8Array,
  policy: DigestPolicy,
): ReceivedDigests | undefined {
  const earlier = verified.get(request);
  // A check with other algorithms, or other bytes, must not live on the verdict of an earlier one.
  if (earlier?.bytes === bytes && policy.algorithms.some((algorithm) => earlier.digests.has(algorithm))) {
    return earlier.digests;
  }
  verified.delete(request);
  const check = { field: "Content-Digest", policy } as const;
  const digests = parseDigests(request, check);
  if (digests !== undefined) match(request, bytes, { digests, check });
  return digests;
}

/** Checks Repr-Digest (RFC 9530 section 3) against the whole representation, also of a partial message. See {@link verifyContentDigest}. */
export function verifyReprDigest(
  message: HeaderLines,
  representation: Uint8Array,
  options: ContentDigestPolicyOptions = {},
): ReceivedDigests | undefined {
  const policy = readOptions("verifyReprDigest", policyTable, options);
  const check = { field: "Repr-Digest", policy } as const;
  const digests = parseDigests(message, check);
  if (digests !== undefined) assertDigests(digests, representation, check);
  return digests;
}

function match(
  request: HeaderLines,
  bytes: Uint8Array,
  { digests, check }: { readonly digests: ReceivedDigests; readonly check: DigestCheck },
): void {
  assertDigests(digests, bytes, check);
  verified.set(request, { bytes, digests });
}

interface DigestCheck {
  readonly field: "Content-Digest" | "Repr-Digest";
  readonly policy: DigestPolicy;
}

/** Reads the field without the body. Undefined when it is missing and the policy allows that; throws a GuardError. */
function parseDigests(message: HeaderLines, check: DigestCheck): ReceivedDigests | undefined {
  const { field, policy } = check;
  const lines = fieldLines(message, field.toLowerCase());
  if (lines.length === 0 && !policy.required) return undefined;
  // RFC 9110 section 5.3: the lines of a list-based field are one value.
  const fieldValue = lines.join(", ");
  if (fieldValue.trim() === "") throw refusal(check, "missing", `the message has no ${field}`);

  const digests = knownDigests(fieldValue, check);
  // RFC 9530 section 6.6: a deprecated algorithm must not be all that the sender offers.
  if (!policy.algorithms.some((algorithm) => digests.has(algorithm))) {
    throw refusal(check, "unsupported", `${field} has no digest of an accepted algorithm`);
  }
  return digests;
}

const digestLengths: Readonly<Record<DigestAlgorithm, number>> = { "sha-256": 32, "sha-512": 64 };

function knownDigests(fieldValue: string, check: DigestCheck): ReceivedDigests {
  let members: ReadonlyMap<string, Buffer>;
  try {
    members = parseByteSequenceDictionary(fieldValue, check.field);
  } catch (error) {
    if (!(error instanceof MessageSignatureError)) throw error;
    throw refusal(check, "invalid", `${check.field} is no dictionary of byte sequences`, error);
  }
  const digests = new Map<DigestAlgorithm, Buffer>();
  for (const [algorithm, digest] of members) {
    // Deprecated algorithms are treated as unknown.
    if (algorithm !== "sha-256" && algorithm !== "sha-512") continue;
    if (digest.length !== digestLengths[algorithm]) {
      throw refusal(check, "invalid", `${check.field} has a ${algorithm} digest of the wrong length`);
    }
    digests.set(algorithm, digest);
  }
  return digests;
}

/** Every known digest must match: a wrong one beside a right one means tampering, or a broken sender. */
function assertDigests(digests: ReceivedDigests, bytes: Uint8Array, check: DigestCheck): void {
  for (const [algorithm, digest] of digests) {
    // Anyone who knows the body knows its digest: the time of the comparison tells nothing.
    if (computeDigest(bytes, algorithm) !== digest.toString("base64")) {
      throw refusal(check, "mismatch", `the ${algorithm} digest of ${check.field} does not match the body`);
    }
  }
}

function refusal(
  { field, policy }: DigestCheck,
  reason: "missing" | "invalid" | "unsupported" | "mismatch",
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

/** Returns a Want-Content-Digest or Want-Repr-Digest value (RFC 9530 section 4) that prefers the first algorithm. */
export function wantContentDigest(algorithms: readonly DigestAlgorithm[]): string {
  return algorithms.map((algorithm, index) => `${algorithm}=${10 - index}`).join(", ");
}

/** Returns base64. At the size of a payout this costs a quarter of `createHash` and a Buffer. */
export function computeDigest(bytes: Uint8Array, algorithm: DigestAlgorithm): string {
  return hash(algorithm === "sha-256" ? "sha256" : "sha512", bytes, "base64");
}

/** Returns a sender's Content-Digest (RFC 9530 section 2). `bytes` must be as on the wire; throws a TypeError for anything but bytes. */
export function createContentDigest(bytes: Uint8Array, algorithm: DigestAlgorithm = "sha-256"): string {
  return createDigest("createContentDigest", bytes, algorithm);
}

/** Returns a sender's Repr-Digest (RFC 9530 section 3) of the whole representation in its Content-Encoding, whatever part is sent. */
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
