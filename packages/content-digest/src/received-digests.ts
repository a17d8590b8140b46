import { GuardError } from "@countersign/core";
import { MessageSignatureError, parseByteSequenceDictionary } from "@countersign/http-message-signatures";
import type { ContentDigestCode } from "./codes.ts";
import {
  computeDigest,
  digestLengths,
  isDigestAlgorithm,
  wantContentDigest,
  type DigestAlgorithm,
} from "./content-digest-field.ts";
import type { DigestPolicy } from "./options.ts";

/** The digests of known algorithms that a message carries; at least one of them satisfies the policy. */
export type ReceivedDigests = ReadonlyMap<DigestAlgorithm, Buffer>;

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
