import { createPublicKey, type KeyObject } from "node:crypto";

/** The DER of an Ed25519 public key (RFC 8410 section 4) but for its last 32 bytes. */
export const spkiPrefix: Buffer = Buffer.from("302a300506032b6570032100", "hex");

const rawLength = 32;
const spkiLength = spkiPrefix.length + rawLength;
// What stands behind the outer length of a private key: the version 0 or 1 (RFC 5958, RFC 8017 and RFC 5915).
const privateVersions: readonly Buffer[] = ["020100", "020101"].map((hex) => Buffer.from(hex, "hex"));

/** A key that cannot be taken. The text says what the key looks like and what to write instead, and holds nothing of it. */
export function keyError(what: string): TypeError {
  return new TypeError(`importVerificationKey: ${what}`);
}

/** The refusal of a private key in any form. */
export function privateKeyError(got: string): TypeError {
  return keyError(
    `${got} is a private key; it belongs to the signer alone. Give the public key: openssl pkey -in private.pem -pubout`,
  );
}

/** The 32 bytes of a public KeyObject. */
export function keyObjectBytes(key: KeyObject): Uint8Array {
  if (key.type === "private") throw privateKeyError("the KeyObject");
  if (key.type !== "public") throw keyError("the KeyObject is a secret key; give an Ed25519 public key");
  if (key.asymmetricKeyType !== "ed25519") throw wrongAlgorithm("the KeyObject", key);
  return key.export({ format: "der", type: "spki" }).subarray(spkiPrefix.length);
}

/** The 32 bytes of what is either these themselves or their DER; `got` names its form in an error. */
export function rawOrSpkiBytes(bytes: Buffer, got: string): Uint8Array {
  if (bytes.length === rawLength) return bytes;
  // Longer texts than any key are not worth a parser.
  if (bytes[0] === 0x30 && bytes.length < 16_384) return spkiBytes(bytes, got);
  if (bytes.length === 2 * rawLength) {
    throw keyError(
      `${got} is 64 bytes long, as a private key with its public key, or a signature, is; give the 32 bytes of the public key alone`,
    );
  }
  throw keyError(
    `${got} is ${bytes.length} bytes long; an Ed25519 public key has ${rawLength}, or ${spkiLength} as SPKI`,
  );
}

/** The 32 bytes of a SubjectPublicKeyInfo: exactly the one DER of an Ed25519 key, nothing behind its end. */
export function spkiBytes(der: Buffer, got: string): Uint8Array {
  if (der.subarray(0, spkiPrefix.length).equals(spkiPrefix)) {
    if (der.length === spkiLength) return der.subarray(spkiPrefix.length);
    const fault =
      der.length < spkiLength ? "is cut short" : `has ${der.length - spkiLength} bytes behind its end`;
    throw keyError(`${got} ${fault}; an Ed25519 public key (SPKI) is exactly ${spkiLength} bytes long`);
  }
  if (isPrivate(der)) throw privateKeyError(got);
  throw otherDer(der, got);
}

function isPrivate(der: Buffer): boolean {
  const lengthBytes = (der[1] ?? 0) < 0x80 ? 0 : (der[1] ?? 0) & 0x7f;
  const version = der.subarray(2 + lengthBytes, 5 + lengthBytes);
  return der[0] === 0x30 && privateVersions.some((start) => start.equals(version));
}

function otherDer(der: Buffer, got: string): TypeError {
  let key: KeyObject;
  try {
    key = createPublicKey({ key: der, format: "der", type: "spki" });
  } catch {
    return keyError(`${got} holds no readable public key (SPKI); make it by openssl pkey -pubin -in key.pem`);
  }
  // An Ed25519 key in other bytes than the prefix: BER, or a NULL among the parameters.
  if (key.asymmetricKeyType === "ed25519") return keyError(`${got} is not the DER of an Ed25519 public key`);
  return wrongAlgorithm(got, key);
}

function wrongAlgorithm(got: string, { asymmetricKeyType }: KeyObject): TypeError {
  return keyError(`${got} is a key of type ${asymmetricKeyType ?? "unknown"}; expected an Ed25519 key`);
}
