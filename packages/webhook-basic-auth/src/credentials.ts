import { hash, timingSafeEqual } from "node:crypto";
import { serializeToken } from "./user-pass.ts";

/** The credential that a request was admitted by. */
export interface VerifiedCredential {
  readonly username: string;
  /** Its position in `credentials`, 0 for a single one; undefined where `verify` decided. */
  readonly index: number | undefined;
}

/** Returns the credential whose token this is; undefined for any other. */
export type CredentialMatcher = (token: string) => VerifiedCredential | undefined;

/**
 * Compiles username and password of every credential into one digest of its token. The time of a comparison depends neither on
 * where a wrong token differs nor on which credential it resembles.
 */
export function compileCredentials(
  credentials: readonly { readonly username: string; readonly password: string }[],
): CredentialMatcher {
  const candidates = credentials.map(({ username, password }, index) => ({
    digest: writeDigest(serializeToken(username, password), Buffer.alloc(digestLength)),
    credential: Object.freeze({ username, index }),
  }));
  const received = Buffer.alloc(digestLength);
  return (token) => {
    writeDigest(token, received);
    let match: VerifiedCredential | undefined;
    for (const { digest, credential } of candidates) {
      if (timingSafeEqual(digest, received)) match = credential;
    }
    return match;
  };
}

const digestLength = 44;

// As base64 text in a buffer that stays: a digest in a new Buffer costs twice as much.
function writeDigest(token: string, target: Buffer): Buffer {
  target.write(hash("sha256", token, "base64"), "latin1");
  return target;
}
