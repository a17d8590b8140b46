import { keyError, privateKeyError, readRawOrSpki, readSpki, type ReadKey } from "./public-key-bytes.ts";

const pemBlock = /^\s*-----BEGIN PUBLIC KEY-----([A-Za-z0-9+/=\s]+)-----END PUBLIC KEY-----\s*$/;
const hexDigits = /^[0-9a-f]+$/i;
const separatedHex = /^(?:0x)?[0-9a-f]{2}(?:[: ]?[0-9a-f]{2})*$/i;
// One alphabet of RFC 4648, not both.
const base64Text = /^(?:[A-Za-z0-9+/]+|[A-Za-z0-9_-]+)={0,2}$/;
const takenForms =
  "an SPKI PEM, base64, base64url or hex of the SPKI or of the 32 bytes of Ed25519, a JWK, or an ssh-ed25519 line";

/** Reads the key that a text holds which is no JSON: PEM, an SSH key, hex or base64. Throws a TypeError that shows nothing of it. */
export function readText(text: string): ReadKey {
  if (text.includes("-----BEGIN")) return readPem(text);
  const trimmed = text.trim();
  if (trimmed === "") throw keyError("the key is empty; is an environment variable or a file not set?");
  if (/^["'`]/.test(trimmed)) throw keyError("the key stands in quotation marks; write it without them");
  if (/^(?:ssh|ecdsa|sk-[a-z0-9]+)-/.test(trimmed) || trimmed.includes(" ssh-")) return readSshLine(trimmed);
  if (trimmed.includes("BEGIN SSH2")) {
    throw keyError("the key is an SSH2 file; give the line that ssh-keygen -i -f file prints");
  }
  if (hexDigits.test(trimmed) && trimmed.length % 2 === 0) {
    return readRawOrSpki(Buffer.from(trimmed, "hex"), "the key in hex");
  }
  if (separatedHex.test(trimmed) && !hexDigits.test(trimmed)) {
    throw keyError("the key looks like hex with 0x, colons or spaces; write the digits alone");
  }
  if (base64Text.test(trimmed)) return readRawOrSpki(canonicalBase64(trimmed), "the key in base64");
  if (/\.(?:pem|pub|key|der|crt|cer|jwk|jwks|json)$|^[.~/][/.]/.test(trimmed)) {
    throw keyError('the key looks like the path of a file; give its content: readFileSync(path, "utf8")');
  }
  throw keyError(`the key is in no known form; expected ${takenForms}`);
}

/** The bytes of base64 or base64url, with or without padding, in the one spelling that they have (RFC 4648 section 3.5). */
function canonicalBase64(text: string): Buffer {
  const digits = text.replace(/=+$/, "");
  const bytes = Buffer.from(digits, "base64");
  const canonical = bytes.toString("base64url") === digits.replaceAll("+", "-").replaceAll("/", "_");
  if (!canonical || (text !== digits && text.length % 4 !== 0)) {
    throw keyError(
      "the key looks like base64, but is cut short, wrongly padded or has other bits set at its end",
    );
  }
  return bytes;
}

// Decoded here: OpenSSL passes over bytes behind the end of the DER, and derives the public half of a private key.
function readPem(text: string): ReadKey {
  const pem = unescapeLines(text);
  const body = pemBlock.exec(pem)?.[1];
  if (body === undefined) throw pemError(pem);
  const base64 = body.replace(/\s+/g, "");
  const der = Buffer.from(base64, "base64");
  if (der.toString("base64") !== base64)
    throw keyError("the PEM is cut short or damaged; copy the whole block");
  return readSpki(der, "the PEM");
}

// As environment variables hold it. No character of a PEM is a backslash, so it has one reading.
function unescapeLines(text: string): string {
  return text.replaceAll("\\r", "\r").replaceAll("\\n", "\n");
}

function pemError(pem: string): TypeError {
  if (/-----BEGIN [A-Z ]*PRIVATE KEY/.test(pem)) return privateKeyError("the PEM");
  if (/-----BEGIN (?:X509 |TRUSTED )?CERTIFICATE/.test(pem)) {
    return keyError(
      "the PEM is a certificate; give its public key: openssl x509 -in cert.pem -pubkey -noout",
    );
  }
  if (pem.includes("-----BEGIN RSA PUBLIC KEY")) {
    return keyError(
      "the PEM is an RSA key as PKCS #1; give it as SPKI: openssl rsa -RSAPublicKey_in -in key.pem -pubout",
    );
  }
  const blocks = pem.split("-----BEGIN").length - 1;
  if (blocks > 1) return keyError(`the text holds ${blocks} PEM blocks; give the one of this keyid`);
  if (!pem.includes("-----BEGIN PUBLIC KEY-----")) {
    return keyError('the PEM is of another kind; expected one block "PUBLIC KEY" (SPKI)');
  }
  if (!pem.includes("-----END PUBLIC KEY-----")) {
    return keyError("the PEM has no END line; copy the whole block, or quote it where lines end a value");
  }
  return keyError(
    'the text holds more than the PEM block; give "PUBLIC KEY" from BEGIN to END and nothing else',
  );
}

// RFC 8709 section 4, in the base64 of an authorized_keys line.
const sshPrefix = Buffer.concat([
  Buffer.from([0, 0, 0, 11]),
  Buffer.from("ssh-ed25519"),
  Buffer.from([0, 0, 0, 32]),
]);

function readSshLine(line: string): ReadKey {
  const [, base64 = ""] = /^ssh-ed25519[ \t]+([A-Za-z0-9+/]+={0,2})(?:[ \t][^\r\n]*)?$/.exec(line) ?? [];
  if (base64 === "") {
    throw keyError(
      "the key looks like an SSH key; expected one line ssh-ed25519 AAAA... without options before it; others: ssh-keygen -e -m PKCS8",
    );
  }
  const blob = canonicalBase64(base64);
  if (blob.length === sshPrefix.length + 32 && blob.subarray(0, sshPrefix.length).equals(sshPrefix)) {
    return { bytes: blob.subarray(sshPrefix.length), algorithms: ["ed25519"] };
  }
  throw keyError("the ssh-ed25519 line is cut short or damaged; copy the whole line");
}
