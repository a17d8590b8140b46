// The TEST KEYS that sign the vectors: those of RFC 9421 appendix B, and others that were made for this alone.
import { createPrivateKey, createSecretKey } from "node:crypto";
import { readFileSync } from "node:fs";

const read = (file) => JSON.parse(readFileSync(new URL(file, import.meta.url), "utf8"));
const jwks = {
  ...read("../../../packages/kernel/http-message-signatures/test/fixtures/rfc9421-keys.json"),
  ...read("../test-keys.json"),
};
const algorithmOf = {
  ed25519: "ed25519",
  otherEd25519: "ed25519",
  p256: "ecdsa-p256-sha256",
  otherP256: "ecdsa-p256-sha256",
  p384: "ecdsa-p384-sha384",
  rsaPss: "rsa-pss-sha512",
  rsa: "rsa-v1_5-sha256",
  otherRsa: "rsa-v1_5-sha256",
  rsa1024: "rsa-v1_5-sha256",
  secret: "hmac-sha256",
  otherSecret: "hmac-sha256",
};

/** The algorithm that a key is for unless a vector says otherwise. */
export const algorithmFor = (name) => algorithmOf[name];

/** The private JWK of a key. */
export const privateJwk = (name) => jwks[name];

/** What signs: a private KeyObject, or a secret one. */
export function signingKey(name) {
  const jwk = jwks[name];
  return jwk.kty === "oct"
    ? createSecretKey(jwk.k, "base64url")
    : createPrivateKey({ key: jwk, format: "jwk" });
}

const publicMembers = ["kty", "crv", "x", "y", "n", "e", "k"];

/** A key as a vector gives it to the verifier; `changes` adds validity, or makes it another one. */
export function verifierKey(name, { jwk: changed = {}, ...changes } = {}) {
  const members = publicMembers.filter((member) => member in jwks[name]);
  const jwk = Object.fromEntries(members.map((member) => [member, jwks[name][member]]));
  return { keyid: "test-key", algorithm: algorithmOf[name], jwk: { ...jwk, ...changed }, ...changes };
}
