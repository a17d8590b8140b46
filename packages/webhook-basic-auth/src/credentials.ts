import { timingSafeEqual } from "node:crypto";
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
 * Compiles username and password of every credential into its token. The time of a comparison depends neither on where a wrong
 * token differs nor on which credential it resembles: all of them are compared over one length, the longest's or more.
 */
export function compileCredentials(
  credentials: readonly { readonly username: string; readonly password: string }[],
): CredentialMatcher {
  const tokens = credentials.map(({ username, password }) => serializeToken(username, password));
  const length = Math.max(leastLength, ...tokens.map((token) => token.length));
  const candidates = credentials.map(({ username }, index) => {
    const token = tokens[index] ?? "";
    return {
      expected: writePadded(token, Buffer.alloc(length)),
      length: token.length,
      credential: Object.freeze({ username, index }),
    };
  });
  const received = Buffer.alloc(length);
  return (token) => {
    writePadded(token, received);
    let match: (typeof candidates)[number] | undefined;
    for (const candidate of candidates) {
      if (timingSafeEqual(candidate.expected, received)) match = candidate;
    }
    // A longer one was cut off, or ends in zeros of its own, which Node's insecureHTTPParser lets pass.
    return match?.length === token.length ? match.credential : undefined;
  };
}

const leastLength = 128;

// Padded with zeros, which no credential's token holds.
function writePadded(token: string, target: Buffer): Buffer {
  target.fill(0, target.write(token, "utf8"));
  return target;
}
