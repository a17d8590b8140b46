import { MessageSignatureError } from "./message-signature-error.ts";

/** Encoded values by encoded name; undefined stands for a name that occurs more than once. */
export type QueryParams = ReadonlyMap<string, string | undefined>;

/**
 * The parameters of a query with its "?", names and values decoded and encoded again (RFC 9421 section 2.2.8). Stricter: a "%"
 * without two hex digits and bytes that are no UTF-8 are refused, which the form parser of the URL Standard makes into other text.
 */
export function parseQueryParams(query: string | undefined): QueryParams {
  const params = new Map<string, string | undefined>();
  for (const pair of (query ?? "?").slice(1).split("&")) {
    if (pair === "") continue;
    const equals = pair.indexOf("=");
    const name = reencode(equals === -1 ? pair : pair.slice(0, equals));
    const value = equals === -1 ? "" : reencode(pair.slice(equals + 1));
    params.set(name, params.has(name) ? undefined : value);
  }
  return params;
}

const unreserved = /^[A-Za-z0-9*\-._]*$/;
const utf8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

function reencode(text: string): string {
  return unreserved.test(text) ? text : encode(decode(text));
}

// The bytes of the form parser. The target is visible ASCII.
function decode(text: string): Uint8Array {
  const bytes = new Uint8Array(text.length);
  let length = 0;
  for (let index = 0; index < text.length; index++) {
    const code = text.charCodeAt(index);
    if (code === 0x25) {
      bytes[length++] = hexByte(text.slice(index + 1, index + 3));
      index += 2;
    } else {
      bytes[length++] = code === 0x2b ? 0x20 : code;
    }
  }
  return bytes.subarray(0, length);
}

function hexByte(digits: string): number {
  if (/^[0-9A-Fa-f]{2}$/.test(digits)) return Number.parseInt(digits, 16);
  throw invalid('has a "%" without two hex digits');
}

// The application/x-www-form-urlencoded percent-encode set, and a space as %20.
function encode(bytes: Uint8Array): string {
  try {
    utf8.decode(bytes);
  } catch {
    throw invalid("is not UTF-8");
  }
  let text = "";
  for (const byte of bytes) {
    const character = String.fromCharCode(byte);
    text += unreserved.test(character) ? character : `%${byte.toString(16).toUpperCase().padStart(2, "0")}`;
  }
  return text;
}

function invalid(what: string): MessageSignatureError {
  return new MessageSignatureError("covered-field-invalid", `a query with covered parameters ${what}`);
}
