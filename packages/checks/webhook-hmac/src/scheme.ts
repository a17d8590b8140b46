import { OptionError } from "@countersign/core";
import {
  holderOf,
  option,
  optionError,
  readOptions,
  type OptionOwner,
  type OptionTable,
  type ReadOptions,
} from "@countersign/core/internal";

/** How the text of a secret encodes the bytes of the key. */
export type SecretEncoding = "utf8" | "base64" | "hex";

export type SignatureAlgorithm = "sha256" | "sha512";

export type SignatureEncoding = "base64" | "hex";

/** Which headers hold what, and which bytes are signed. Validated on use. */
export interface SignatureScheme {
  /** The header field with the signature; it must have no other use. */
  readonly header: string;
  /** The hash of the HMAC. Default `sha256`. */
  readonly algorithm?: SignatureAlgorithm | undefined;
  /** How the signature may be written. Default `["base64"]`. */
  readonly signatureEncodings?: readonly SignatureEncoding[] | undefined;
  /**
   * Precedes each signature, such as `sha256=`, `v1,` or `sha256 ` with its space, or the first of several that follow each other, as in
   * `v0=new,old`. Entries of a list with another prefix are ignored.
   */
  readonly prefix?: string | undefined;
  /** Separates the entries of a field with several. Default: the field is one signature. */
  readonly separator?: "," | " " | undefined;
  /** The time of the signature in whole seconds: a field of its own, or the entry with this prefix. Default none. */
  readonly timestamp?: { readonly header: string } | { readonly prefix: string } | undefined;
  /** The header field with the message's identifier. Default none. */
  readonly id?: string | undefined;
  /** The signed text: `{body}`, and `{timestamp}` and `{id}` if the scheme has them. Default `{body}`. */
  readonly signed?: string | undefined;
  /** How a secret encodes the key. Default `utf8`. */
  readonly secretEncoding?: SecretEncoding | undefined;
  /** A prefix of secrets that is no part of the key, such as `whsec_`. Default none. */
  readonly secretPrefix?: string | undefined;
}

export type SchemeName = "github" | "shopify" | "slack" | "standard-webhooks" | "stripe" | "svix";

const standardWebhooks: SignatureScheme = Object.freeze({
  header: "webhook-signature",
  prefix: "v1,",
  separator: " ",
  timestamp: Object.freeze({ header: "webhook-timestamp" }),
  id: "webhook-id",
  signed: "{id}.{timestamp}.{body}",
  secretEncoding: "base64",
  secretPrefix: "whsec_",
});

/** How well-known senders sign. Spread one for a sender with other fields: `{ ...signatureSchemes.stripe, header }`. */
export const signatureSchemes: Readonly<Record<SchemeName, SignatureScheme>> = Object.freeze({
  github: Object.freeze({
    header: "X-Hub-Signature-256",
    signatureEncodings: ["hex"] as const,
    prefix: "sha256=",
  }),
  shopify: Object.freeze({ header: "X-Shopify-Hmac-Sha256" }),
  slack: Object.freeze({
    header: "X-Slack-Signature",
    signatureEncodings: ["hex"] as const,
    prefix: "v0=",
    timestamp: Object.freeze({ header: "X-Slack-Request-Timestamp" }),
    signed: "v0:{timestamp}:{body}",
  }),
  "standard-webhooks": standardWebhooks,
  stripe: Object.freeze({
    header: "Stripe-Signature",
    signatureEncodings: ["hex"] as const,
    prefix: "v1=",
    separator: ",",
    timestamp: Object.freeze({ prefix: "t=" }),
    signed: "{timestamp}.{body}",
  }),
  svix: Object.freeze({
    ...standardWebhooks,
    header: "svix-signature",
    timestamp: Object.freeze({ header: "svix-timestamp" }),
    id: "svix-id",
  }),
});

export interface FieldName {
  readonly written: string;
  readonly lower: string;
}

export type TimestampPlace = { readonly header: FieldName } | { readonly prefix: string };

/** The signed parts before and after the body: literal text and `{name}` of values. */
export interface SignedParts {
  readonly before: readonly string[];
  readonly after: readonly string[];
}

export const schemeTable = {
  header: option.own(readHeader),
  algorithm: option.oneOf(["sha256", "sha512"], "sha256"),
  signatureEncodings: option.own(readSignatureEncodings, '["base64"]'),
  prefix: option.own(readPrefix, '""'),
  separator: option.optional(option.oneOf([",", " "])),
  timestamp: option.optional(option.own(readTimestamp)),
  id: option.optional(option.own(readHeader)),
  signed: option.own(readSigned, '"{body}"'),
  secretEncoding: option.oneOf(["utf8", "base64", "hex"], "utf8"),
  secretPrefix: option.own(readText, '""'),
} satisfies OptionTable<SignatureScheme, unknown>;

export type ResolvedScheme = ReadOptions<typeof schemeTable>;

function resolveScheme(value: object, owner: OptionOwner): ResolvedScheme {
  const scheme = readOptions(owner, schemeTable, value);
  const { header, timestamp, id, separator, signed, prefix } = scheme;
  const parts = new Set([...signed.before, ...signed.after]);
  for (const part of ["timestamp", "id"] as const) {
    // Anyone can write what is not signed: a fresh time on an old message, a new identifier on one that was seen.
    if ((scheme[part] !== undefined) !== parts.has(`{${part}}`)) {
      const what = `must have {${part}} exactly when the scheme has the member ${part}`;
      throw new OptionError(owner, { option: "signed", what });
    }
  }
  if (separator !== undefined && prefix.includes(separator)) {
    throw new OptionError(owner, { option: "prefix", what: "must not hold the separator" });
  }
  if (timestamp !== undefined && "prefix" in timestamp) {
    const overlaps = prefix.startsWith(timestamp.prefix) || timestamp.prefix.startsWith(prefix);
    if (separator === undefined || overlaps) {
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

// HTTP, or basic authentication beside this guard, reads these fields: no request with a signature in one of them could pass.
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
  const isList = Array.isArray(encodings) && encodings.length > 0 && encodings.every(isSignatureEncoding);
  if (isList && new Set(encodings).size === encodings.length) return [...encodings];
  throw optionError(owner, name, 'a non-empty array of "base64" and "hex", each once', encodings);
}

function isSignatureEncoding(value: unknown): value is SignatureEncoding {
  return value === "base64" || value === "hex";
}

const visible = /^[!-~]{0,32}$/;
// White space at the beginning of a field is no part of its value (RFC 9110 section 5.5).
const visibleFirst = /^(?:[!-~][ -~]{0,31})?$/;

function readPrefix(value: unknown = "", owner: OptionOwner, name: string): string {
  if (typeof value === "string" && visibleFirst.test(value)) return value;
  throw optionError(owner, name, "up to 32 visible ASCII characters and spaces, no space first", value);
}

function readText(value: unknown = "", owner: OptionOwner, name: string): string {
  if (typeof value === "string" && visible.test(value)) return value;
  throw optionError(owner, name, "up to 32 visible ASCII characters", value);
}

function readTimestamp(value: unknown, owner: OptionOwner, name: string): TimestampPlace {
  const expected = 'either { header: "X-Timestamp" } or { prefix: "t=" }';
  if (typeof value !== "object" || value === null || Object.keys(value).length !== 1) {
    throw optionError(owner, name, expected, value);
  }
  if ("header" in value) return { header: readHeader(value.header, owner, `${name}.header`) };
  if ("prefix" in value) {
    const prefix = readText(value.prefix, owner, `${name}.prefix`);
    if (prefix !== "") return { prefix };
  }
  throw optionError(owner, name, expected, value);
}

function readSigned(value: unknown = "{body}", owner: OptionOwner, name: string): SignedParts {
  const expected = 'a text with {body} once, such as "{timestamp}.{body}"';
  if (typeof value !== "string") throw optionError(owner, name, expected, value);
  const parts = value.split(/(\{[^{}]*\})/).filter((part) => part !== "");
  const values = parts.filter((part) => part.startsWith("{"));
  const isKnown = values.every((part) => ["{body}", "{timestamp}", "{id}"].includes(part));
  const body = parts.indexOf("{body}");
  // Two values need text between them: a digit could move from one to the other without changing the signed bytes.
  const isApart = parts.every(
    (part, index) => !part.startsWith("{") || !/^[{0-9]/.test(parts[index + 1] ?? ""),
  );
  if (!isKnown || !isApart || body === -1 || new Set(values).size < values.length) {
    const detail = `${expected}, no name twice and text that is no digit between two of them`;
    throw optionError(owner, name, detail, value);
  }
  return { before: parts.slice(0, body), after: parts.slice(body + 1) };
}

const known: ReadonlyMap<unknown, ResolvedScheme> = new Map(
  Object.entries(signatureSchemes).map(([name, scheme]) => [name, resolveScheme(scheme, name)]),
);
const names = Object.keys(signatureSchemes)
  .map((name) => JSON.stringify(name))
  .join(", ");

/** Throws an OptionError for a scheme whose signature would not cover all that it has. */
export function readScheme(value: unknown, owner: OptionOwner, name: string): ResolvedScheme {
  const preset = known.get(value);
  if (preset !== undefined) return preset;
  if (typeof value !== "object" || value === null) {
    throw optionError(owner, name, `one of ${names}, or an object such as { header: "X-Signature" }`, value);
  }
  return resolveScheme(value, holderOf(owner, name));
}
