import { createHmac } from "node:crypto";
import { OptionError } from "@countersign/core";
import {
  fieldLines,
  hasMethods,
  option,
  optionError,
  readOptions,
  type HeaderLines,
  type OptionTable,
} from "@countersign/core/internal";
import { importSecret } from "./options.ts";
import { assertBytes, contentOf, hmacOf, readClaim, type Lines } from "./payload-signature.ts";
import { readScheme, type ResolvedScheme, type SchemeName, type SignatureScheme } from "./scheme.ts";

/** Node's or Express's `req.headers`, `headers` of a Request, or every line as it came. */
export type PayloadHeaders =
  | Readonly<Record<string, string | readonly string[] | undefined>>
  | { get(name: string): string | null }
  | HeaderLines;

/** Finds lines by lower-case name. Throws a TypeError for one value where the scheme has several fields. */
export function linesOf(header: string | PayloadHeaders | undefined, scheme: ResolvedScheme): Lines {
  const isSeveral =
    scheme.id !== undefined || (scheme.timestamp !== undefined && "header" in scheme.timestamp);
  if (header === undefined || typeof header === "string") {
    if (isSeveral) {
      throw new TypeError(
        "verifyPayload: the scheme has several header fields: give all of them, such as req.headers",
      );
    }
    return () => (header === undefined ? [] : [header]);
  }
  if ("rawHeaders" in header && Array.isArray(header.rawHeaders)) {
    const lines: HeaderLines = { rawHeaders: header.rawHeaders };
    return (name) => fieldLines(lines, name);
  }
  // Node's own fields may have a `get` too, which is text.
  if (hasMethods<Pick<Headers, "get">>(header, "get")) {
    return (name) => [header.get(name)].filter((value) => typeof value === "string");
  }
  const fields = Object.entries(header);
  return (name) =>
    fields.flatMap(([field, value]) =>
      field.toLowerCase() === name && value !== undefined ? [value].flat().map(String) : [],
    );
}

/** Returns X-Payload-Signature, HMAC-SHA-256 (RFC 2104) in base64 of the wire bytes. Throws a TypeError on non-bytes or an empty secret. */
export function signPayload(bytes: Uint8Array, secret: string): string {
  const owner = "signPayload";
  assertBytes(owner, bytes);
  const key = importSecret(secret, { secretEncoding: "utf8", secretPrefix: "" }, { owner, name: "secret" });
  return createHmac("sha256", key).update(bytes).digest("base64");
}

export interface SignPayloadHeadersOptions {
  /** A name of `signatureSchemes`, or such an object, as the receiver expects. */
  readonly scheme: SchemeName | SignatureScheme;
  /** The identifier of the message, where the scheme has one. */
  readonly id?: string | undefined;
  /** When it is signed, in seconds since 1970. Default now. */
  readonly timestampSeconds?: number | undefined;
}

export const signTable = {
  scheme: option.own(readScheme),
  id: option.optional(
    option.own((value, owner, name) => {
      if (typeof value === "string") return value;
      throw optionError(owner, name, "a string", value);
    }),
  ),
  timestampSeconds: option.optional(option.integer({ min: 0, max: 999_999_999_999 }), "now"),
} satisfies OptionTable<SignPayloadHeadersOptions, unknown>;

/** For senders and tests: the fields that {@link verifyPayload} expects. Throws a TypeError on a bad secret, option or identifier. */
export function signPayloadHeaders(
  bytes: Uint8Array,
  secret: string,
  options: SignPayloadHeadersOptions,
): Record<string, string> {
  const owner = "signPayloadHeaders";
  const {
    scheme,
    id,
    timestampSeconds = Math.floor(Date.now() / 1000),
  } = readOptions(owner, signTable, options);
  const { header, prefix, separator, timestamp, algorithm, signatureEncodings } = scheme;
  assertBytes(owner, bytes);
  const key = importSecret(secret, scheme, { owner, name: "secret" });
  const headers: Record<string, string> = {};
  if (scheme.id !== undefined) {
    if (id === undefined) throw optionError(owner, "id", "the identifier of the message", id);
    headers[scheme.id.written] = id;
  }
  const text = String(timestampSeconds);
  if (timestamp !== undefined && "header" in timestamp) headers[timestamp.header.written] = text;
  const content = contentOf(bytes, { timestamp: { text }, id }, scheme.signed);
  const [encoding = "base64"] = signatureEncodings;
  const signature = prefix + hmacOf(content, key, { algorithm, encoding });
  const before = timestamp !== undefined && "prefix" in timestamp ? timestamp.prefix + text + separator : "";
  headers[header.written] = before + signature;
  try {
    readClaim(linesOf(headers, scheme), scheme, 401);
  } catch (cause) {
    throw new OptionError(owner, { option: "id", what: "is none that the scheme could verify", cause });
  }
  return headers;
}
