import { createHmac, createSecretKey, randomBytes, timingSafeEqual, type KeyObject } from "node:crypto";
import { keyError } from "../verification-key.ts";
import type { Algorithm } from "./algorithm.ts";

// RFC 2104 section 3: less than the output of the digest would weaken it.
const leastBytes = 32;
const placeholder = Buffer.alloc(32);

/** RFC 9421 section 3.3.3. */
export const hmacAlgorithm: Algorithm = {
  vet(secret) {
    const { symmetricKeySize = 0 } = secret;
    if (symmetricKeySize >= leastBytes) return secret;
    throw keyError(
      `the secret is ${symmetricKeySize} bytes long; expected at least ${leastBytes}, such as crypto.randomBytes(32)`,
    );
  },
  makeDecoy: () => createSecretKey(randomBytes(leastBytes)),
  isSigningKey: ({ type, symmetricKeySize = 0 }) => type === "secret" && symmetricKeySize >= leastBytes,
  sign: hmacSha256,
  verify,
  // Below the price of a hand-over to another thread.
  verifyAsync: async (key, data, signature) => verify(key, data, signature),
};

function hmacSha256(key: KeyObject, data: Uint8Array): Buffer {
  return createHmac("sha256", key).update(data).digest();
}

function verify(key: KeyObject, data: Uint8Array, signature: Uint8Array): boolean {
  const sound = signature.length === placeholder.length;
  return timingSafeEqual(hmacSha256(key, data), sound ? signature : placeholder) && sound;
}
