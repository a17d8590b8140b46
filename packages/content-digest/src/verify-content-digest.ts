import { createRequestFact, type GuardRequest, type RequestFact } from "@countersign/guard";
import { fieldLines } from "@countersign/raw-body";
import { parseContentDigest, refusal, type ReceivedDigests } from "./content-digest-field.ts";
import { computeDigest, type DigestAlgorithm } from "./digest.ts";
import type { DigestPolicy } from "./options.ts";

interface VerifiedDigests {
  readonly bytes: Buffer;
  readonly digests: ReceivedDigests;
}

const verified: RequestFact<VerifiedDigests> = createRequestFact();

/**
 * Checks the Content-Digest field of `req` against `bytes`, which must be the body as received. Throws a GuardError with
 * status 401. Remembers a success, so that a second guard on the same request computes nothing.
 */
export function verifyContentDigest(
  req: GuardRequest,
  bytes: Buffer,
  algorithms: readonly DigestAlgorithm[],
  required: boolean,
): void {
  verifyByPolicy(req, bytes, { algorithms, required, status: 401 });
}

/** Whether a Content-Digest of this request matched its body. A request without the field has none. */
export function hasVerifiedContentDigest(req: GuardRequest): boolean {
  return verified.get(req) !== undefined;
}

/** The digest of the body by this algorithm, when Content-Digest had it and it matched. */
export function verifiedDigest(req: GuardRequest, algorithm: DigestAlgorithm): Buffer | undefined {
  return verified.get(req)?.digests.get(algorithm);
}

/** As {@link verifyContentDigest}, with the status of the policy. */
export function verifyByPolicy(req: GuardRequest, bytes: Buffer, policy: DigestPolicy): void {
  const earlier = verified.get(req);
  // A guard with other algorithms, or other bytes, must not live on the verdict of an earlier one.
  if (earlier?.bytes === bytes && policy.algorithms.some((algorithm) => earlier.digests.has(algorithm)))
    return;
  verified.delete(req);
  const digests = readContentDigest(req, policy);
  if (digests !== undefined) matchContentDigest(req, bytes, { digests, policy });
}

/** The field alone, so that a request without a usable digest is refused before its body is read. */
export function readContentDigest(req: GuardRequest, policy: DigestPolicy): ReceivedDigests | undefined {
  return parseContentDigest(fieldLines(req, "content-digest"), policy);
}

/** Compares every known digest: a wrong one beside a right one is a sign of tampering, or of a broken sender. */
export function matchContentDigest(
  req: GuardRequest,
  bytes: Buffer,
  { digests, policy }: { readonly digests: ReceivedDigests; readonly policy: DigestPolicy },
): void {
  for (const [algorithm, digest] of digests) {
    // Whoever knows the body knows its digest: nothing to gain from the time of the comparison.
    if (computeDigest(bytes, algorithm) !== digest.toString("base64")) {
      throw refusal(policy, "mismatch", `the ${algorithm} digest of Content-Digest does not match the body`);
    }
  }
  verified.set(req, { bytes, digests });
}
