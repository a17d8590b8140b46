import { OptionError } from "@countersign/core";
import {
  holderOf,
  option,
  optionError,
  readOptions,
  type OptionOwner,
  type OptionTable,
  type ReadOptions,
} from "@countersign/core/door";
import { isSignatureEncoding, type SignatureEncoding } from "./payload-signature.ts";
import { signatureSchemes, type SignatureScheme } from "./signature-schemes.ts";

const seconds = 'either { header: "X-Timestamp" } or { prefix: "t=" }';
/** The names of a field, as it is written and as it is looked for. */
export interface FieldName {
  readonly written: string;
  readonly lower: string;
}

/** Where a scheme has its time: a field of its own, or entries of the signature's field. */
export type TimestampPlace = { readonly header: FieldName } | { readonly prefix: string };

/** What stands around the body in what is signed, by turns literal text and the name of a value. */
export interface SignedParts {
  readonly before: readonly string[];
  readonly after: readonly string[];
}

export const schemeTable = {
  header: option.own(readHeader),
  algorithm: option.oneOf(["sha256", "sha512"], "sha256"),
  signatureEncodings: option.own(readSignatureEncodings, '["base64"]'),
  prefix: option.own(readText, '""'),
  separator: option.optional(option.oneOf([",", " "])),
  timestamp: option.optional(option.own(readTimestamp)),
  id: option.optional(option.own(readHeader)),
  signed: option.own(readSigned, '"{body}"'),
  secretEncoding: option.oneOf(["utf8", "base64", "hex"], "utf8"),
  secretPrefix: option.own(readText, '""'),
} satisfies OptionTable<SignatureScheme, unknown>;

/** A scheme with its defaults, checked. */
export type ResolvedScheme = ReadOptions<typeof schemeTable>;

function resolveScheme(value: object, owner: OptionOwner): ResolvedScheme {
  const scheme = readOptions(owner, schemeTable, value);
  const { header, timestamp, id, separator, signed, prefix } = scheme;
  const parts = new Set([...signed.before, ...signed.after]);
  for (const [part, place] of [
    ["timestamp", timestamp],
    ["id", id],
  ] as const) {
    // What is not signed everybody can write: a fresh time on an old message, a new identifier on one that was seen.
    if ((place !== undefined) !== parts.has(`{${part}}`)) {
      const what = `must have {${part}} exactly when the scheme has the member ${part}`;
      throw new OptionError(owner, { option: "signed", what });
    }
  }
  if (timestamp !== undefined && "prefix" in timestamp) {
    const isTold = separator !== undefined && prefix !== "" && !overlap(prefix, timestamp.prefix);
    if (!isTold) {
      const what = "in an entry needs a separator, and a prefix of the signatures that it differs from";
      throw new OptionError(owner, { option: "timestamp", what });
    }
  }
  const fields = [header, id, timestamp !== undefined && "header" in timestamp ? timestamp.header : undefined]
    .filter((field) => field !== undefined)
    .map(({ lower }) => lower);
  if (new Set(fields).size < fields.length) {
    throw new OptionError(owner, { option: "header", what: "has one field for two things" });
  }
  return scheme;
}

function overlap(one: string, other: string): boolean {
  return one.startsWith(other) || other.startsWith(one);
}

// Fields whose value HTTP, or basic authentication beside this guard, reads in a way of its own: no request with a signature in
// one of them could pass, and the answer would not tell why.
const takenHeaders: ReadonlySet<string> = new Set([
  "authorization",
  "connection",
  "content-digest",
  "content-encoding",
  "content-length",
  "content-type",
  "cookie",
  "expect",
  "host",
  "keep-alive",
  "proxy-authorization",
  "te",
  "trailer",
  "transfer-encoding",
  "upgrade",
]);

// RFC 9110 section 5.6.2.
const token = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/;

function readHeader(value: unknown, owner: OptionOwner, name: string): FieldName {
  if (typeof value !== "string" || !token.test(value)) {
    throw optionError(owner, name, "the name of a header field", value);
  }
  const lower = value.toLowerCase();
  if (!takenHeaders.has(lower)) return { written: value, lower };
  const expected = "the name of a header field without another use, such as X-Payload-Signature";
  throw optionError(owner, name, expected, value);
}

function readSignatureEncodings(
  encodings: unknown = ["base64"],
  owner: OptionOwner,
  name: string,
): readonly SignatureEncoding[] {
  if (
    Array.isArray(encodings) &&
    encodings.length > 0 &&
    encodings.every(isSignatureEncoding) &&
    new Set(encodings).size === encodings.length
  ) {
    return [...encodings];
  }
  throw optionError(owner, name, 'a non-empty array of "base64" and "hex", each once', encodings);
}

const visible = /^[!-~]{0,32}$/;

function readText(value: unknown = "", owner: OptionOwner, name: string): string {
  if (typeof value === "string" && visible.test(value)) return value;
  throw optionError(owner, name, "up to 32 visible ASCII characters", value);
}

function readTimestamp(value: unknown, owner: OptionOwner, name: string): TimestampPlace {
  if (typeof value !== "object" || value === null || Object.keys(value).length !== 1) {
    throw optionError(owner, name, seconds, value);
  }
  if ("header" in value) return { header: readHeader(value.header, owner, `${name}.header`) };
  if ("prefix" in value) {
    const prefix = readText(value.prefix, owner, `${name}.prefix`);
    if (prefix !== "") return { prefix };
  }
  throw optionError(owner, name, seconds, value);
}

function readSigned(value: unknown = "{body}", owner: OptionOwner, name: string): SignedParts {
  const expected = 'a text with {body} once, such as "{timestamp}.{body}"';
  if (typeof value !== "string") throw optionError(owner, name, expected, value);
  const parts = value.split(/(\{[^{}]*\})/).filter((part) => part !== "");
  const values = parts.filter((part) => part.startsWith("{"));
  const isKnown = values.every((part) => ["{body}", "{timestamp}", "{id}"].includes(part));
  const body = parts.indexOf("{body}");
  // Between two values something has to stand: a digit could move from one to the other, and the signature would still be right.
  const isApart = parts.every(
    (part, index) => !part.startsWith("{") || !/^[{0-9]/.test(parts[index + 1] ?? ""),
  );
  if (!isKnown || !isApart || body === -1 || new Set(values).size < values.length) {
    throw optionError(
      owner,
      name,
      `${expected}, no name twice and text that is no digit between two of them`,
      value,
    );
  }
  return { before: parts.slice(0, body), after: parts.slice(body + 1) };
}

const known: ReadonlyMap<unknown, ResolvedScheme> = new Map(
  Object.entries(signatureSchemes).map(([name, scheme]) => [name, resolveScheme(scheme, name)]),
);
const names = Object.keys(signatureSchemes)
  .map((name) => JSON.stringify(name))
  .join(", ");

/** A scheme by its name, or as data. Throws an OptionError for one whose signature would not bind what it seems to. */
export function readScheme(value: unknown, owner: OptionOwner, name: string): ResolvedScheme {
  const preset = known.get(value);
  if (preset !== undefined) return preset;
  if (typeof value !== "object" || value === null) {
    throw optionError(owner, name, `one of ${names}, or an object such as { header: "X-Signature" }`, value);
  }
  return resolveScheme(value, holderOf(owner, name));
}
