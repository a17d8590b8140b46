import { Buffer } from "node:buffer";
import type { Mark } from "./secret-search.ts";
import { at, type View } from "./view.ts";

// Every armour: PKCS#8 plain and ENCRYPTED (RFC 7468 sections 10 and 11), RSA, EC, DSA, OPENSSH, SSH2 and PGP. One without its end
// reaches as far as the text.
const armour =
  /-{4,5} ?BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY[^\0]*?(?:- ?END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)? ?-{4,5}|\0|$)/g;

// The private members of a JWK (RFC 7518 section 6).
const privateMember = "d|p|q|dp|dq|qi|k";
const memberValue = String.raw`[\w+/=-]{20,}`;
const jwkMember = new RegExp(String.raw`"(?:${privateMember})"\s*:\s*"(${memberValue})`, "g");
const memberName = new RegExp(`^(?:${privateMember})$`);
const wholeValue = new RegExp(`^${memberValue}$`);

/** Whether a member of an object is a private one of a JWK. */
export function isPrivateMember(name: string, value: string): boolean {
  return memberName.test(name) && wholeValue.test(value);
}

/** Marks each private key that the view holds, by its form: in an armour, as a JWK, as DER, in OpenSSH's own format. */
export function markPrivateKeys(view: View, mark: Mark): void {
  const { bytes, starts, ends } = view;
  const text = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString("latin1");
  const markBytes = (first: number, end: number): void => {
    if (end > first) mark(at(starts, first), at(ends, end - 1));
  };
  if (text.includes("PRIVATE KEY")) {
    for (const { index, 0: found } of text.matchAll(armour)) {
      markBytes(index, index + found.length - (found.endsWith("\0") ? 1 : 0));
    }
  }
  for (const { index, 0: found, 1: value = "" } of text.matchAll(jwkMember)) {
    markBytes(index + found.length - value.length, index + found.length);
  }
  markBinaryKeys(view, text, markBytes);
}

const openssh = "openssh-key-v1\0";
const sequence = 0x30;

function markBinaryKeys(
  { bytes, starts }: View,
  text: string,
  markBytes: (first: number, end: number) => void,
): void {
  let end = 0;
  for (let index = 0; index < bytes.length; index += 1) {
    const byte = at(bytes, index);
    const isOpenssh = byte === 0x6f && text.startsWith(openssh, index);
    if (!isOpenssh && !(byte === sequence && isPrivateDer(bytes, index))) continue;
    // Looked for once in each run.
    if (end <= index) end = endOfRun(starts, index);
    markBytes(index, isOpenssh ? end : Math.min(end, endOfDer(bytes, index)));
  }
}

function endOfRun(starts: Int32Array, index: number): number {
  const end = starts.subarray(index).findIndex((start) => start < 0);
  return end === -1 ? starts.length : index + end;
}

/** Where the content of an element of DER begins; -1 where no length stands. */
function contentAt(bytes: Uint8Array, index: number): number {
  const length = at(bytes, index + 1);
  if (length < 0) return -1;
  // 0x80 is a length that is not known before the end (BER).
  return length <= 0x80 ? index + 2 : length <= 0x84 ? index + 2 + (length & 0x7f) : -1;
}

function endOfDer(bytes: Uint8Array, index: number): number {
  const length = at(bytes, index + 1);
  const content = contentAt(bytes, index);
  if (length === 0x80) return Infinity;
  if (length < 0x80) return content + length;
  return content + bytes.subarray(index + 2, content).reduce((sum, byte) => sum * 256 + byte, 0);
}

const version0 = [0x02, 0x01, 0x00];
const version1 = [0x02, 0x01, 0x01];
const version3 = [0x02, 0x01, 0x03];
// 1.2.840.113549.1.5 (PKCS#5) and 1.2.840.113549.1.12 (PKCS#12), by which private keys are encrypted (RFC 5958 section 3).
const pkcs5 = [0x06, 0x09, 0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x05];
const pkcs12 = [0x06, 0x0a, 0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x0c];

/** Whether a SEQUENCE is PKCS#8 (RFC 5958), RSA (RFC 8017 A.1.2) or DSA, EC (RFC 5915), encrypted PKCS#8, or PKCS#12 (RFC 7292). */
function isPrivateDer(bytes: Uint8Array, index: number): boolean {
  const content = contentAt(bytes, index);
  if (content < 0) return false;
  if ([version0, version1, version3].some((version) => stands(bytes, content, version))) {
    const next = at(bytes, content + 3);
    // An AlgorithmIdentifier, which begins with an OID; a modulus or prime of some length; the octets of a scalar.
    if (next === sequence) return at(bytes, contentAt(bytes, content + 3)) === 0x06;
    if (next === 0x02) return at(bytes, content + 4) > 0x20;
    return next === 0x04 && at(bytes, content + 2) === 1 && at(bytes, content + 4) >= 0x10;
  }
  if (at(bytes, content) !== sequence) return false;
  const identifier = contentAt(bytes, content);
  return stands(bytes, identifier, pkcs5) || stands(bytes, identifier, pkcs12);
}

function stands(bytes: Uint8Array, index: number, expected: readonly number[]): boolean {
  return expected.every((byte, offset) => at(bytes, index + offset) === byte);
}
