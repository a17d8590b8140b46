import { guard, isPromiseLike, type GuardRequest, type Middleware } from "@countersign/guard";
import { capturedRawBody, readRawBody } from "@countersign/raw-body";
import type { ReceivedDigests } from "./content-digest-field.ts";
import { resolveOptions, type ContentDigestOptions, type DigestPolicy } from "./options.ts";
import { matchContentDigest, readContentDigest, verifyByPolicy } from "./verify-content-digest.ts";

/**
 * Verifies Content-Digest (RFC 9530) over the bytes of the body as received. Captures them itself unless that has happened.
 * Refuses with 401 by default; throws a TypeError when it is built with a bad option.
 */
export function contentDigest(options: ContentDigestOptions = {}): Middleware {
  const { limitBytes, ...policy } = resolveOptions(options);
  return guard("contentDigest", (req) => {
    const captured = capturedRawBody(req);
    if (captured !== undefined) return verifyByPolicy(req, captured, policy);

    const digests = readContentDigest(req, policy);
    if (digests === undefined) return undefined;
    const bytes = readRawBody(req, limitBytes);
    if (isPromiseLike(bytes)) return matchWhenRead(req, bytes, { digests, policy });
    return matchContentDigest(req, bytes, { digests, policy });
  });
}

async function matchWhenRead(
  req: GuardRequest,
  bytes: PromiseLike<Buffer>,
  expected: { readonly digests: ReceivedDigests; readonly policy: DigestPolicy },
): Promise<void> {
  matchContentDigest(req, await bytes, expected);
}
