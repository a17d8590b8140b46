import { createPrivateKey, generateKeyPairSync, randomBytes, type KeyObject } from "node:crypto";
import { keyDocuments } from "@countersign/http-message-signatures/internal";

/** An Ed25519 key pair as the lending service would own it; the platform gets `keyid` and `publicKeyPem` only. */
type SigningKeyPair = {
  readonly keyid: string;
  /** SPKI, PEM. */
  readonly publicKeyPem: string;
  /** PKCS#8, PEM, not encrypted. */
  readonly privateKeyPem: string;
};

// What a String of RFC 8941 section 3.3.3 can hold; the length is what receivers commonly accept.
const printableAscii = /^[\x20-\x7e]{1,256}$/;

/** Makes an Ed25519 key pair. `keyid` defaults to `test-` and eight random hex digits; a TypeError if Signature-Input cannot hold it. */
export function generateKeyPair(options: { readonly keyid?: string | undefined } = {}): SigningKeyPair {
  const keyid = options.keyid ?? `test-${randomBytes(4).toString("hex")}`;
  if (!printableAscii.test(keyid)) {
    throw new TypeError("generateKeyPair: option keyid must be 1 to 256 printable ASCII characters");
  }
  const { publicKey, privateKey } = generateKeyPairSync("ed25519", {
    publicKeyEncoding: { type: "spki", format: "pem" },
    privateKeyEncoding: { type: "pkcs8", format: "pem" },
  });
  return { keyid, publicKeyPem: publicKey, privateKeyPem: privateKey };
}

/** Reads an Ed25519 private key. Throws a TypeError that shows nothing of the key. */
export function importPrivateKey(key: KeyObject | string): KeyObject {
  const privateKey = typeof key === "string" ? parsePem(keyDocuments.withoutByteOrderMark(key)) : key;
  if (privateKey.type !== "private")
    throw new TypeError(`expected a private key, got a ${privateKey.type} key`);
  if (privateKey.asymmetricKeyType !== "ed25519") {
    throw new TypeError(`expected an Ed25519 key, got ${privateKey.asymmetricKeyType ?? "another kind"}`);
  }
  return privateKey;
}

function parsePem(pem: string): KeyObject {
  const label = /^-----BEGIN ([A-Z0-9 ]{1,40})-----$/m.exec(pem)?.[1];
  if (label === undefined)
    throw new TypeError("expected a private key in PEM form (-----BEGIN PRIVATE KEY-----)");
  if (label.includes("ENCRYPTED")) throw new TypeError("expected a private key that is not encrypted");
  if (!label.endsWith("PRIVATE KEY")) throw new TypeError(`expected a PRIVATE KEY, got a ${label}`);
  try {
    return createPrivateKey(pem);
  } catch {
    // The library's own message is of no use here, and its cause chain could quote the input.
    throw new TypeError("expected a private key in PEM form, got one that cannot be decoded");
  }
}
