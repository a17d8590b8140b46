import { createSecretKey, KeyObject } from "node:crypto";
import { types } from "node:util";
import { isRecord } from "./verification-key.ts";

/**
 * Reads the secret of hmac-sha256: its bytes, or a secret KeyObject. A text is refused, because it may mean its own bytes or those
 * that it encodes; and so is a public key in any form, since whoever knows it could sign. Throws a TypeError, made by `error`, that
 * shows nothing of it.
 */
export function readSecret(key: unknown, error: (what: string) => TypeError): KeyObject {
  if (key instanceof KeyObject && key.type !== "secret") {
    throw error(`the KeyObject is a ${key.type} key; hmac-sha256 takes a secret`);
  }
  if (key instanceof KeyObject || types.isUint8Array(key)) {
    const bytes = key instanceof KeyObject ? key.export() : Buffer.from(key);
    const form = formOfKey(bytes);
    if (form === undefined) return createSecretKey(bytes);
    throw error(`the secret is ${form} of a key; give random bytes, such as crypto.randomBytes(32)`);
  }
  if (typeof key === "string") {
    throw error(
      'the secret is a text, which has several readings; give its bytes: Buffer.from(text, "base64")',
    );
  }
  const hint = isRecord(key) && key["kty"] === "oct" ? ': Buffer.from(jwk.k, "base64url")' : "";
  throw error(`expected a secret as Buffer, Uint8Array or secret KeyObject${hint}`);
}

// An SSH key by its whole beginning: four bytes alone, random ones may be.
const keyText = /^\s*(?:-----BEGIN|(?:ssh|ecdsa)-[\w.@-]+[ \t]+AAAA|\{[^]*"kty")/;
// In base64 and in hex, 30 is the tag of every key.
const encodedDer = /^\s*(?:M[A-P]|30)[A-Za-z0-9+/_=\s-]+$/;

function formOfKey(bytes: Buffer): string | undefined {
  // Only the start of a long secret is looked at as text; no key that is taken is as long.
  const text = bytes.toString("latin1", 0, 16_384);
  if (keyText.test(text)) return "the text";
  const encodings = encodedDer.test(text) ? (["base64", "hex"] as const) : [];
  const isDer = [bytes, ...encodings.map((encoding) => Buffer.from(text, encoding))].some(isKeyDer);
  return isDer ? "the DER" : undefined;
}

// SPKI, PKCS #1, PKCS #8, SEC 1 and X.509 are a sequence up to the end that begins with a sequence or a number. The shortest key is
// that of Ed25519, so that no secret of usual length is ever taken for one.
function isKeyDer(der: Buffer): boolean {
  if (der.length < 44 || der[0] !== 0x30) return false;
  const [, first = 0] = der;
  const lengthBytes = first < 0x80 ? 0 : first & 0x7f;
  if (lengthBytes > 2) return false;
  const length = lengthBytes === 0 ? first : der.readUIntBE(2, lengthBytes);
  return length === der.length - 2 - lengthBytes && [0x30, 0x02].includes(der[2 + lengthBytes] ?? 0);
}
