import { createRequestFact, type ReceivedRequest, type RequestFact } from "@countersign/core";
import { capturedRawBody, fieldLines, readOptions, type HeaderLines } from "@countersign/core/door";
import { readBody } from "@countersign/raw-body";
import {
  assertDigests,
  parseDigests,
  type ContentDigestPolicyOptions,
  type DigestAlgorithm,
  type DigestPolicy,
  type ReceivedDigests,
} from "./digest-fields.ts";
import { policyTable, type ResolvedDigestOptions } from "./options.ts";

interface VerifiedDigests {
  readonly bytes: Uint8Array;
  readonly digests: ReceivedDigests;
}

const verified: RequestFact<VerifiedDigests> = createRequestFact();

/**
 * Checks the Content-Digest field (RFC 9530) of a request against `bytes`, which must be its body as received. Returns the digests
 * that matched, by algorithm; undefined where the field is not there and not required. Throws a GuardError with the option
 * `status`, default 401. Remembers a success, so that a second check of the same request computes nothing.
 */
export function verifyContentDigest(
  request: HeaderLines,
  bytes: Uint8Array,
  options: ContentDigestPolicyOptions = {},
): ReceivedDigests | undefined {
  return verifyByPolicy(request, bytes, readOptions("verifyContentDigest", policyTable, options));
}

/** Whether a Content-Digest of this request matched its body. A request without the field has none. */
export function hasVerifiedContentDigest(subject: object): boolean {
  return verified.get(subject) !== undefined;
}

/** The digest of the body by this algorithm, when Content-Digest had it and it matched. */
export function verifiedDigest(subject: object, algorithm: DigestAlgorithm): Buffer | undefined {
  return verified.get(subject)?.digests.get(algorithm);
}

/** {@link verifyContentDigest} of a body that may be yet to be read: the field alone first, so that nothing is read in vain. */
export async function checkContentDigest(
  request: ReceivedRequest,
  { limit, ...policy }: ResolvedDigestOptions,
): Promise<void> {
  const captured = capturedRawBody(request);
  if (captured !== undefined) {
    verifyByPolicy(request, captured, policy);
    return;
  }
  const digests = parseContentDigest(request, policy);
  if (digests !== undefined) match(request, await readBody(request, limit), { digests, policy });
}

/** {@link verifyContentDigest} with options that were checked before. */
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
  const digests = parseContentDigest(request, policy);
  if (digests !== undefined) match(request, bytes, { digests, policy });
  return digests;
}

/**
 * Checks the Repr-Digest field (RFC 9530 section 3) of a message against the whole representation, which the caller has put together
 * where the message carries a part of it. Returns the digests that matched, by algorithm; undefined where the field is not there and
 * not required. Throws a GuardError with the option `status`, default 401.
 */
export function verifyReprDigest(
  message: HeaderLines,
  representation: Uint8Array,
  options: ContentDigestPolicyOptions = {},
): ReceivedDigests | undefined {
  const policy = readOptions("verifyReprDigest", policyTable, options);
  const check = { field: "Repr-Digest", policy } as const;
  const digests = parseDigests(fieldLines(message, "repr-digest"), check);
  if (digests !== undefined) assertDigests(digests, representation, check);
  return digests;
}

function parseContentDigest(request: HeaderLines, policy: DigestPolicy): ReceivedDigests | undefined {
  return parseDigests(fieldLines(request, "content-digest"), { field: "Content-Digest", policy });
}

function match(
  request: HeaderLines,
  bytes: Uint8Array,
  { digests, policy }: { readonly digests: ReceivedDigests; readonly policy: DigestPolicy },
): void {
  assertDigests(digests, bytes, { field: "Content-Digest", policy });
  verified.set(request, { bytes, digests });
}
