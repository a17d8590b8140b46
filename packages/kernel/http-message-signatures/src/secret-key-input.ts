import { KeyObject } from "node:crypto";
import { types } from "node:util";
import { derElement } from "./der.ts";
import { readSecretJwk, type SecretUse, type UnknownMembers } from "./public-key-jwk.ts";

/**
 * The secret of hmac-sha256: its bytes, a secret KeyObject, or a JWK of kty oct. A text is refused, because it may mean its own
 * bytes or those that it encodes; and so is a public key in any form, since whoever knows it could sign. Throws a TypeError that
 * shows nothing of it.
 */
export function readSecret(key: unknown, use: SecretUse): Uint8Array {
  const bytes = secretBytes(key, use);
  const fault = faultOf(bytes);
  if (fault !== undefined) throw use.error(fault);
  return bytes;
}

function secretBytes(key: unknown, use: SecretUse): Buffer {
  if (key instanceof KeyObject) {
    if (key.type === "secret") return key.export();
    throw use.error(`the KeyObject is a ${key.type} key; hmac-sha256 takes a secret`);
  }
  if (types.isUint8Array(key)) return Buffer.from(key);
  if (isJwk(key)) return Buffer.from(readSecretJwk(key, use));
  if (typeof key === "string") {
    throw use.error(
      'the secret is a text, which has several readings; give its bytes: Buffer.from(text, "base64")',
    );
  }
  throw use.error("expected a secret as Buffer or Uint8Array, secret KeyObject, or JWK of kty oct");
}

function isJwk(key: unknown): key is UnknownMembers {
  return typeof key === "object" && key !== null && "kty" in key;
}

// An SSH key by its whole beginning: four bytes alone, random ones may be.
const keyText = /^\s*(?:-----BEGIN|(?:ssh|ecdsa)-[\w.@-]+[ \t]+AAAA|\{[^]*"kty")/;
// In base64 and in hex, 30 is the tag of every key.
const encodedDer = /^\s*(?:M[A-P]|30)[A-Za-z0-9+/_=\s-]+$/;

function faultOf(bytes: Buffer): string | undefined {
  // Only the start of a long secret is looked at as text; no key that is taken is as long.
  const text = bytes.toString("latin1", 0, 16_384);
  if (keyText.test(text))
    return "the secret is the text of a key; give random bytes, such as crypto.randomBytes(32)";
  const encodings = encodedDer.test(text) ? (["base64", "hex"] as const) : [];
  const isKey = [bytes, ...encodings.map((encoding) => Buffer.from(text, encoding))].some(isKeyDer);
  return isKey
    ? "the secret is the DER of a key; give random bytes, such as crypto.randomBytes(32)"
    : undefined;
}

// SPKI, PKCS #1, PKCS #8, SEC 1 and X.509 all begin with a sequence or a number inside of a sequence. The shortest one of a key is
// that of Ed25519, so that no secret of usual length is ever taken for one.
function isKeyDer(der: Buffer): boolean {
  const outer = derElement(der, 0, 0x30);
  if (outer?.to !== der.length || der.length < 44) return false;
  const first = derElement(der, outer.from, 0x30) ?? derElement(der, outer.from, 0x02);
  return first !== undefined && first.to <= outer.to;
}
