import { GuardError } from "@countersign/guard";
import { MessageSignatureError, parseByteSequenceDictionary } from "@countersign/http-message-signatures";
import { digestLengths, isDigestAlgorithm, wantContentDigest, type DigestAlgorithm } from "./digest.ts";
import type { DigestPolicy } from "./options.ts";

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

/** The refusal with the code `content-digest-<reason>`, and the algorithms that would have been accepted. */
export function refusal(policy: DigestPolicy, reason: string, message: string, cause?: unknown): GuardError {
  return new GuardError({
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
