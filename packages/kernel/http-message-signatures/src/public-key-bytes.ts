import { createPublicKey, type KeyObject } from "node:crypto";
import type { SignatureAlgorithm } from "./algorithms/algorithm.ts";
import { derElement } from "./der.ts";

/** A public key as it was read, not yet vetted. */
export interface ReadKey {
  /** The subjectPublicKey of a SubjectPublicKeyInfo: 32 bytes of Ed25519, an uncompressed point, an RSAPublicKey. */
  readonly bytes: Uint8Array;
  /** The algorithms that it can be meant for; more than one only for RSA. */
  readonly algorithms: readonly SignatureAlgorithm[];
}

/** The DER of an Ed25519 public key (RFC 8410 section 4) but for its last 32 bytes. */
export const spkiPrefix: Buffer = Buffer.from("302a300506032b6570032100", "hex");
/** The DER of a public key on P-256 (RFC 5480 section 2.1.1) but for its point. */
export const p256Prefix: Buffer = Buffer.from("3059301306072a8648ce3d020106082a8648ce3d030107034200", "hex");
/** The DER of a public key on P-384 but for its point. */
export const p384Prefix: Buffer = Buffer.from("3076301006072a8648ce3d020106052b81040022036200", "hex");

const rawLength = 32;
const rsaPss = ["rsa-pss-sha512"] as const;

// The AlgorithmIdentifiers that are taken, in their DER: all of one means one algorithm and one curve.
const algorithmIdentifiers: ReadonlyMap<string, readonly SignatureAlgorithm[]> = new Map<
  string,
  readonly SignatureAlgorithm[]
>([
  ["300506032b6570", ["ed25519"]],
  ["301306072a8648ce3d020106082a8648ce3d030107", ["ecdsa-p256-sha256"]],
  ["301006072a8648ce3d020106052b81040022", ["ecdsa-p384-sha384"]],
  ["300d06092a864886f70d0101010500", ["rsa-pss-sha512", "rsa-v1_5-sha256"]],
  // RFC 4055 section 3.1: without parameters, or bound to SHA-512, MGF1 with SHA-512 and a salt of 64 bytes. The digests' own
  // parameters are NULL or absent (section 2.1).
  ["300b06092a864886f70d01010a", rsaPss],
  [
    "304106092a864886f70d01010a3034a00f300d06096086480165030402030500a11c301a06092a864886f70d010108300d06096086480165030402030500a203020140",
    rsaPss,
  ],
  [
    "303d06092a864886f70d01010a3030a00d300b0609608648016503040203a11a301806092a864886f70d010108300b0609608648016503040203a203020140",
    rsaPss,
  ],
]);

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

/** Reads a public KeyObject. */
export function readKeyObject(key: KeyObject): ReadKey {
  if (key.type === "private") throw privateKeyError("the KeyObject");
  if (key.type !== "public") {
    throw keyError(
      'the KeyObject is a secret key; give a public key, or write alg: "hmac-sha256" if both sides share it',
    );
  }
  return readSpki(key.export({ format: "der", type: "spki" }), "the KeyObject");
}

/** Reads what is either the 32 bytes of an Ed25519 key or the DER of any key; `got` names its form in an error. */
export function readRawOrSpki(bytes: Buffer, got: string): ReadKey {
  if (bytes.length === rawLength) return { bytes, algorithms: ["ed25519"] };
  // Longer texts than any key are not worth a parser.
  if (bytes[0] === 0x30 && bytes.length < 16_384) return readSpki(bytes, got);
  if (bytes.length === 2 * rawLength) {
    throw keyError(
      `${got} is 64 bytes long, as a private key with its public key, or a signature, is; give the 32 bytes of the public key alone`,
    );
  }
  throw keyError(
    `${got} is ${bytes.length} bytes long; an Ed25519 public key has ${rawLength}, or ${spkiPrefix.length + rawLength} as SPKI; give other keys as SPKI`,
  );
}

/** Reads a SubjectPublicKeyInfo (RFC 5280 section 4.1) in its one DER, nothing behind its end. */
export function readSpki(der: Buffer, got: string): ReadKey {
  if (isPrivate(der)) throw privateKeyError(got);
  const outer = derElement(der, 0, 0x30);
  const identifier = outer && derElement(der, outer.from, 0x30);
  const bits = identifier && derElement(der, identifier.to, 0x03);
  const algorithms = identifier && algorithmIdentifiers.get(der.toString("hex", outer.from, identifier.to));
  // The first byte of a BIT STRING says how many bits of its last one are unused.
  if (algorithms === undefined || bits?.to !== outer?.to || der[bits?.from ?? 0] !== 0)
    throw otherDer(der, got);
  if (bits === undefined || der.length < bits.to) {
    throw keyError(`${got} is cut short; copy the whole key`);
  }
  if (der.length > bits.to) {
    throw keyError(
      `${got} has ${der.length - bits.to} bytes behind its end; give the public key (SPKI) alone`,
    );
  }
  return { bytes: der.subarray(bits.from + 1, bits.to), algorithms };
}

function isPrivate(der: Buffer): boolean {
  const lengthBytes = (der[1] ?? 0) < 0x80 ? 0 : (der[1] ?? 0) & 0x7f;
  const version = der.subarray(2 + lengthBytes, 5 + lengthBytes);
  return der[0] === 0x30 && privateVersions.some((start) => start.equals(version));
}

const expected = "expected an Ed25519, P-256, P-384 or RSA key";

function otherDer(der: Buffer, got: string): TypeError {
  let key: KeyObject;
  try {
    key = createPublicKey({ key: der, format: "der", type: "spki" });
  } catch {
    return keyError(`${got} holds no readable public key (SPKI); make it by openssl pkey -pubin -in key.pem`);
  }
  const { asymmetricKeyType: type = "unknown", asymmetricKeyDetails } = key;
  const curve = asymmetricKeyDetails?.namedCurve;
  if (type === "ec" && curve !== "prime256v1" && curve !== "secp384r1") {
    return keyError(`${got} is a key on the curve ${curve ?? "of its own parameters"}; ${expected}`);
  }
  if (type === "rsa-pss") {
    return keyError(`${got} is an RSA-PSS key for other parameters than SHA-512 with a salt of 64 bytes`);
  }
  // The right key in other bytes than its DER: BER, a NULL among the parameters or none, a curve by its numbers.
  if (["ed25519", "ec", "rsa"].includes(type)) {
    return keyError(`${got} is not the DER of its public key; make it by openssl pkey -pubin -in key.pem`);
  }
  return keyError(`${got} is a key of type ${type}; ${expected}`);
}
