import { createHmac, timingSafeEqual, type KeyObject } from "node:crypto";
import { GuardError } from "@countersign/core";
import {
  signatureSchemes,
  type FieldName,
  type ResolvedScheme,
  type SignatureAlgorithm,
  type SignatureEncoding,
  type SignedParts,
  type TimestampPlace,
} from "./scheme.ts";

/** Refusals of the body itself are in RawBodyCode. */
export type PayloadSignatureCode =
  | "payload-id-malformed"
  | "payload-id-missing"
  | "payload-signature-malformed"
  | "payload-signature-missing"
  | "payload-signature-wrong"
  | "payload-timestamp-expired"
  | "payload-timestamp-future"
  | "payload-timestamp-malformed"
  | "payload-timestamp-missing"
  | "secrets-unavailable";

export function assertBytes(owner: string, bytes: unknown): asserts bytes is Uint8Array {
  if (!(bytes instanceof Uint8Array)) throw new TypeError(`${owner}: bytes must be a Buffer or Uint8Array`);
}

interface SignedContent {
  readonly before: string;
  readonly body: Uint8Array;
  readonly after: string;
}

export function hmacOf(
  { before, body, after }: SignedContent,
  key: KeyObject,
  { algorithm, encoding }: { readonly algorithm: SignatureAlgorithm; readonly encoding: SignatureEncoding },
): string {
  const hmac = createHmac(algorithm, key);
  if (before !== "") hmac.update(before, "latin1");
  hmac.update(body);
  if (after !== "") hmac.update(after, "latin1");
  return hmac.digest(encoding);
}

// Reused, because new Buffers cost more. Nothing awaits between a write and the comparison.
const base64Length = { sha256: 44, sha512: 88 };
const bufferPair = (length: number): Readonly<Record<"received" | "expected", Buffer>> => ({
  received: Buffer.alloc(length),
  expected: Buffer.alloc(length),
});
const buffers = { sha256: bufferPair(base64Length.sha256), sha512: bufferPair(base64Length.sha512) };

/** The position of the key whose HMAC of `content` is among `signatures` (base64); -1 for none. Tries every pair in constant time. */
export function matchSignature(
  signatures: readonly string[],
  content: SignedContent,
  { keys, algorithm }: { readonly keys: readonly KeyObject[]; readonly algorithm: SignatureAlgorithm },
): number {
  const { received, expected } = buffers[algorithm];
  let match = -1;
  for (const [index, key] of keys.entries()) {
    expected.write(hmacOf(content, key, { algorithm, encoding: "base64" }), "latin1");
    for (const signature of signatures) {
      received.write(signature, "latin1");
      if (timingSafeEqual(expected, received) && match === -1) match = index;
    }
  }
  return match;
}

// The last character before the padding has unused bits, two of 32 bytes and four of 64: only zeros are accepted.
const patterns: Readonly<Record<SignatureEncoding, Readonly<Record<SignatureAlgorithm, RegExp>>>> = {
  base64: {
    sha256: /^[A-Za-z0-9+/]{42}[AEIMQUYcgkosw048]=$/,
    sha512: /^[A-Za-z0-9+/]{85}[AQgw]==$/,
  },
  hex: { sha256: /^[0-9A-Fa-f]{64}$/, sha512: /^[0-9A-Fa-f]{128}$/ },
};

/** Returns base64; undefined for anything not in one of the encodings. */
function parseSignature(
  text: string,
  encodings: readonly SignatureEncoding[],
  algorithm: SignatureAlgorithm,
): string | undefined {
  for (const encoding of encodings) {
    if (!patterns[encoding][algorithm].test(text)) continue;
    return encoding === "base64" ? text : Buffer.from(text, "hex").toString("base64");
  }
  return undefined;
}

export function contentOf(
  body: Uint8Array,
  {
    timestamp,
    id,
  }: { readonly timestamp: { readonly text: string } | undefined; readonly id: string | undefined },
  { before, after }: SignedParts,
): SignedContent {
  // The usual scheme signs the body alone.
  if (before.length === 0 && after.length === 0) return { before: "", body, after: "" };
  const textOf = (parts: readonly string[]): string =>
    parts
      .map((part) => (part === "{timestamp}" ? timestamp?.text : part === "{id}" ? id : part) ?? "")
      .join("");
  return { before: textOf(before), body, after: textOf(after) };
}

/** What the header fields claim, unverified. */
export interface SignatureClaim {
  /** In base64. */
  readonly signatures: readonly string[];
  /** Seconds since 1970, and the digits as sent. */
  readonly timestamp: { readonly text: string; readonly seconds: number } | undefined;
  readonly id: string | undefined;
}

/** The lines of a field, by its name in lower case. */
export type Lines = (name: string) => readonly string[];

// A sender has a few secrets during a rotation. More entries are unauthenticated work.
const maxEntries = 16;
const maxLength = 8192;
// Twelve digits reach the year 33658; thirteen are milliseconds.
const wholeSeconds = /^(?:0|[1-9]\d{0,11})$/;
const fieldText = /^[\t -~]*$/;
const entryText = /^[!-~]+$/;
const visible = /^[!-~]{1,256}$/;

/** Throws a GuardError with `status` for anything that is not exactly as the scheme says. */
export function readClaim(lines: Lines, scheme: ResolvedScheme, status: number): SignatureClaim {
  const refuse: Refuse = (code, message) => new GuardError<PayloadSignatureCode>({ status, code, message });
  const { header, timestamp } = scheme;
  const field = only(lines, header);
  if (field === undefined) {
    const message = `the request has no ${header.written} field${otherScheme(lines)}`;
    throw refuse("payload-signature-missing", message);
  }
  const entries = entriesOf(field, scheme);
  const signatures = entries && signaturesOf(entries, scheme);
  if (entries === undefined || signatures === undefined) {
    throw refuse("payload-signature-malformed", `${header.written} is not ${expectationOf(scheme)}`);
  }
  return {
    signatures,
    timestamp:
      timestamp === undefined ? undefined : readTimestamp(timestampText(timestamp, entries, lines), refuse),
    id: scheme.id === undefined ? undefined : readId(lines, scheme.id, { scheme, refuse }),
  };
}

/** Names a known sender's field, in case the option `scheme` was forgotten. */
function otherScheme(lines: Lines): string {
  const found = Object.entries(signatureSchemes).find(
    ([, { header }]) => lines(header.toLowerCase()).length > 0,
  );
  if (found === undefined) return "";
  const [name, { header }] = found;
  return `, and has ${header}: did you mean scheme: ${JSON.stringify(name)}?`;
}

type Refuse = (code: PayloadSignatureCode, message: string) => GuardError<PayloadSignatureCode>;

/** The value of a field; `""`, which is never valid, for more than one line. */
function only(lines: Lines, { lower }: FieldName): string | undefined {
  const values = lines(lower);
  return values.length > 1 ? "" : values[0];
}

function entriesOf(field: string, { separator, prefix }: ResolvedScheme): readonly string[] | undefined {
  if (field.length > maxLength || !fieldText.test(field)) return undefined;
  // No regular expression that ends in spaces: it takes quadratic time.
  const value = field.trim();
  const entries = separator === undefined ? [value] : value.split(separator, maxEntries + 1);
  const textOf = (entry: string): string => (entry.startsWith(prefix) ? entry.slice(prefix.length) : entry);
  // White space in an entry: a framework joined two lines of the field.
  return entries.length <= maxEntries && entries.every((entry) => entryText.test(textOf(entry)))
    ? entries
    : undefined;
}

/**
 * Undefined for no signature, or a malformed one with the scheme's prefix. One prefix may precede several signatures, as in `v0=new,old`
 * while a secret changes: an entry that is a bare signature has the prefix of the entry before it.
 */
function signaturesOf(
  entries: readonly string[],
  { prefix, separator, algorithm, signatureEncodings }: ResolvedScheme,
): readonly string[] | undefined {
  const signatures: string[] = [];
  let hasPrefix = false;
  for (const entry of entries) {
    const isPrefixed = entry.startsWith(prefix);
    if (!isPrefixed && separator === undefined) return undefined;
    const text = isPrefixed ? entry.slice(prefix.length) : entry;
    const signature = parseSignature(text, signatureEncodings, algorithm);
    if (isPrefixed && signature === undefined) return undefined;
    // An entry of another kind, such as a time or another version, ends the list of the prefix.
    hasPrefix = isPrefixed || (hasPrefix && signature !== undefined);
    if (hasPrefix && signature !== undefined) signatures.push(signature);
  }
  return signatures.length === 0 ? undefined : signatures;
}

function expectationOf({ algorithm, signatureEncodings, prefix, separator }: ResolvedScheme): string {
  const one = `an HMAC-${algorithm === "sha256" ? "SHA-256" : "SHA-512"} in ${signatureEncodings.join(" or ")}`;
  const behind = prefix === "" ? "" : ` after ${JSON.stringify(prefix)}`;
  return separator === undefined
    ? `exactly one line with ${one}${behind}`
    : `one line of up to ${maxEntries} entries with ${one}${behind} among them`;
}

function timestampText(place: TimestampPlace, entries: readonly string[], lines: Lines): string | undefined {
  if ("header" in place) return only(lines, place.header);
  const [entry, ...others] = entries.filter((candidate) => candidate.startsWith(place.prefix));
  return entry === undefined ? undefined : others.length === 0 ? entry.slice(place.prefix.length) : "";
}

function readTimestamp(text: string | undefined, refuse: Refuse): SignatureClaim["timestamp"] {
  if (text === undefined) {
    throw refuse("payload-timestamp-missing", "the request does not say when it was signed");
  }
  if (!wholeSeconds.test(text)) {
    throw refuse(
      "payload-timestamp-malformed",
      "the time of the signature is not exactly one number of whole seconds",
    );
  }
  return { text, seconds: Number(text) };
}

function readId(
  lines: Lines,
  field: FieldName,
  { scheme: { signed }, refuse }: { readonly scheme: ResolvedScheme; readonly refuse: Refuse },
): string {
  const id = only(lines, field);
  if (id === undefined) {
    throw refuse("payload-id-missing", `the request has no ${field.written} field`);
  }
  // An identifier that holds the text beside it would give two messages one signature.
  const parts = [...signed.before, "{body}", ...signed.after];
  const at = parts.indexOf("{id}");
  const beside = [parts[at - 1], parts[at + 1]];
  if (!visible.test(id) || beside.some((text) => text !== undefined && id.includes(text))) {
    throw refuse("payload-id-malformed", `${field.written} is not exactly one identifier`);
  }
  return id;
}

/** Throws a GuardError with `status` for a signature more than `toleranceSeconds` older or newer than now. */
export function assertFresh(
  { timestamp }: SignatureClaim,
  {
    toleranceSeconds,
    clock,
    status,
  }: { readonly toleranceSeconds: number; readonly clock: () => number; readonly status: number },
): void {
  if (timestamp === undefined) return;
  const age = Math.floor(clock() / 1000) - timestamp.seconds;
  if (Math.abs(age) <= toleranceSeconds) return;
  const [code, direction] = age > 0 ? (["expired", "old"] as const) : (["future", "early"] as const);
  throw new GuardError<PayloadSignatureCode>({
    status,
    code: `payload-timestamp-${code}`,
    message: `the signature is ${Math.abs(age)} s ${direction}, over ${toleranceSeconds}`,
  });
}
