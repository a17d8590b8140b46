import type { Mark, View } from "./encoded-views.ts";

// PKCS#8 plain and ENCRYPTED (RFC 7468 sections 10 and 11), RSA, EC, DSA, OPENSSH, SSH2, PGP. Without its end: to the end of the text.
const armour =
  /-{4,5} ?BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY[^\0]*?(?:- ?END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)? ?-{4,5}|\0|$)/g;

// The private members of a JWK (RFC 7518 section 6).
const privateMember = "d|p|q|dp|dq|qi|k";
const memberValue = String.raw`[\w+/=-]{20,}`;
const jwkMember = new RegExp(String.raw`"(?:${privateMember})"\s*:\s*"(${memberValue})`, "g");
const memberName = new RegExp(`^(?:${privateMember})$`);
const wholeValue = new RegExp(`^${memberValue}$`);

export function isPrivateMember(name: string, value: string): boolean {
  return memberName.test(name) && wholeValue.test(value);
}

/** Finds keys by form alone: in armour, as a JWK, as DER, in OpenSSH's own format. */
export function markPrivateKeys({ bytes, starts, ends }: View, mark: Mark): void {
  const markBytes = (first: number, end: number): void => {
    if (end > first) mark(starts[first] ?? 0, ends[end - 1] ?? 0);
  };
  if (bytes.includes("PRIVATE KEY")) {
    for (const { index, 0: found } of bytes.matchAll(armour)) {
      markBytes(index, index + found.length - (found.endsWith("\0") ? 1 : 0));
    }
  }
  for (const { index, 0: found, 1: value = "" } of bytes.matchAll(jwkMember)) {
    markBytes(index + found.length - value.length, index + found.length);
  }
  let end = 0;
  for (const { index, 0: found } of bytes.matchAll(/openssh-key-v1\0|0/g)) {
    const isOpenssh = found !== "0";
    if (!isOpenssh && !isPrivateDer(bytes, index)) continue;
    // The end of its run, before a break: looked for once in each.
    if (end <= index) end = starts.includes(-1, index) ? starts.indexOf(-1, index) : starts.length;
    markBytes(index, isOpenssh ? end : Math.min(end, endOfDer(bytes, index)));
  }
}

/** The start of the content of a DER element; -1 without a length. */
function contentAt(bytes: string, index: number): number {
  const length = bytes.charCodeAt(index + 1);
  // 0x80 is a length that is not known before the end (BER).
  if (length <= 0x80) return index + 2;
  return length <= 0x84 ? index + 2 + (length & 0x7f) : -1;
}

function endOfDer(bytes: string, index: number): number {
  const length = bytes.charCodeAt(index + 1);
  const content = contentAt(bytes, index);
  if (length === 0x80) return Infinity;
  if (length < 0x80) return content + length;
  const digits = Array.from(bytes.slice(index + 2, content), (byte) => byte.charCodeAt(0));
  return content + digits.reduce((sum, byte) => sum * 256 + byte, 0);
}

const sequence = 0x30;
const versions = ["\x02\x01\x00", "\x02\x01\x01", "\x02\x01\x03"];
// 1.2.840.113549.1.5 (PKCS#5) and 1.2.840.113549.1.12 (PKCS#12), the encryption of private keys (RFC 5958 section 3).
const pkcs5 = "\x06\x09\x2a\x86\x48\x86\xf7\x0d\x01\x05";
const pkcs12 = "\x06\x0a\x2a\x86\x48\x86\xf7\x0d\x01\x0c";

/** PKCS#8 (RFC 5958), RSA (RFC 8017 A.1.2) or DSA, EC (RFC 5915), encrypted PKCS#8, or PKCS#12 (RFC 7292). */
function isPrivateDer(bytes: string, index: number): boolean {
  const content = contentAt(bytes, index);
  if (content < 0) return false;
  if (versions.some((version) => bytes.startsWith(version, content))) {
    const next = bytes.charCodeAt(content + 3);
    const length = bytes.charCodeAt(content + 4);
    // An AlgorithmIdentifier, which begins with an OID; a modulus or prime of some length; the octets of a scalar.
    if (next === sequence) return bytes.charCodeAt(contentAt(bytes, content + 3)) === 0x06;
    if (next === 0x02) return length > 0x20;
    return next === 0x04 && bytes.charCodeAt(content + 2) === 1 && length >= 0x10;
  }
  if (bytes.charCodeAt(content) !== sequence) return false;
  const identifier = contentAt(bytes, content);
  return bytes.startsWith(pkcs5, identifier) || bytes.startsWith(pkcs12, identifier);
}
