import { createHash } from "node:crypto";
import { isVerificationKey, type VerificationKey } from "./verification-key.ts";

// RFC 7638 section 3.2 and RFC 8037 section 2: members that are required to represent the key, in lexicographic order.
const requiredMembers = ["crv", "e", "kty", "n", "x", "y"] as const;

/**
 * The JWK thumbprint of a public key by SHA-256 (RFC 7638), in base64url without padding. Throws a TypeError on anything that is not
 * of importVerificationKey, and on a secret, which a thumbprint would let others try guesses against (RFC 7638 section 7).
 */
export function jwkThumbprint(key: VerificationKey): string {
  if (!isVerificationKey(key))
    throw new TypeError("jwkThumbprint: the key is not one of importVerificationKey");
  if (key.publicKey.type !== "public") {
    throw new TypeError("jwkThumbprint: the key is a secret; only a public key has a thumbprint to show");
  }
  const jwk = key.publicKey.export({ format: "jwk" });
  // JSON.stringify leaves out what is undefined: RSA has no crv, Ed25519 no y.
  const json = JSON.stringify(Object.fromEntries(requiredMembers.map((name) => [name, jwk[name]])));
  return createHash("sha256").update(json).digest("base64url");
}
