import type { Parameters } from "./field-scanner.ts";
import { MessageSignatureError } from "./message-signature-error.ts";
import {
  parseDictionary,
  parseItem,
  parseList,
  serializeDictionary,
  serializeList,
  serializeMember,
} from "./structured-field.ts";

export interface RequestMessage {
  /** In its case on the wire. */
  readonly method: string;
  /** The request target in origin-form (RFC 9112 section 3.2.1), exactly as sent: Express's `req.originalUrl`. */
  readonly target: string;
  /** Names and values alternate, as in Node's `req.rawHeaders`. Of HTTP/2 pseudo-headers only `:authority` is read, not as a field. */
  readonly rawHeaders: readonly string[];
  /** Needed only where a covered component depends on it: `@scheme`, `@target-uri`, or an `@authority` with a port. */
  readonly scheme?: "http" | "https" | undefined;
  /** For `@authority` and `@target-uri`; default `:authority` (HTTP/2) or the Host field. */
  readonly authority?: string | undefined;
  /** Trailer field names and values in turn: Node's `req.rawTrailers` once the body has ended. Needed for `;tr`. */
  readonly rawTrailers?: readonly string[] | undefined;
}

export interface ResponseMessage extends Pick<RequestMessage, "rawHeaders" | "rawTrailers"> {
  readonly status: number;
  /** Needed for `;req`. */
  readonly request?: RequestMessage | undefined;
}

export type Message = RequestMessage | ResponseMessage;

export function isResponse(message: Message): message is ResponseMessage {
  return "status" in message;
}

/** The field lines of a message by lower-case name, in order. Node joins or drops repeated lines in `req.headers`. */
export type FieldLines = ReadonlyMap<string, readonly string[]>;

/** Groups `rawHeaders` by lower-case name, keeping every occurrence; pseudo-headers keep their colon. */
export function collectFieldLines(rawHeaders: readonly string[]): FieldLines {
  const lines = new Map<string, string[]>();
  for (let index = 0; index + 1 < rawHeaders.length; index += 2) {
    const name = (rawHeaders[index] ?? "").toLowerCase();
    const value = rawHeaders[index + 1] ?? "";
    const present = lines.get(name);
    if (present === undefined) lines.set(name, [value]);
    else present.push(value);
  }
  return lines;
}

/** The value of a field for signatures (RFC 9421 section 2.1): lines trimmed and joined; undefined when there is none. */
export function combinedFieldValue(lines: readonly string[] | undefined): string | undefined {
  const first = lines?.[0];
  if (lines === undefined || first === undefined) return undefined;
  return lines.length === 1 ? trimWhitespace(first) : lines.map(trimWhitespace).join(", ");
}

// By hand: a regular expression anchored at the end takes quadratic time on a long run of spaces inside the value.
function trimWhitespace(value: string): string {
  let start = 0;
  let end = value.length;
  while (start < end && isWhitespace(value.charCodeAt(start))) start++;
  while (end > start && isWhitespace(value.charCodeAt(end - 1))) end--;
  return value.slice(start, end);
}

function isWhitespace(code: number): boolean {
  return code === 0x20 || code === 0x09;
}

// RFC 9110 fields of one value: two lines would let two readers take two values.
const singletonFields = new Set([
  "authorization",
  "content-length",
  "content-location",
  "content-range",
  "content-type",
  "date",
  "from",
  "host",
  "idempotency-key",
  "if-modified-since",
  "if-unmodified-since",
  "last-modified",
  "max-forwards",
  "origin",
  "proxy-authorization",
  "range",
  "referer",
  "user-agent",
]);

const printableAscii = /^[\x20-\x7e]*$/;

/** RFC 9421 section 2.1. */
export class FieldValues {
  readonly lines: FieldLines;
  private readonly rawTrailers: readonly string[] | undefined;
  private readonly types: FieldTypes | undefined;
  private trailerLines: FieldLines | undefined;

  constructor({ rawTrailers }: Message, lines: FieldLines, types: FieldTypes | undefined) {
    this.lines = lines;
    this.rawTrailers = rawTrailers;
    this.types = types;
  }

  /** Returns the value of a field whose parameters passed {@link assertComputable}. */
  valueOf(name: string, parameters: Parameters): string {
    if (parameters.size === 0) return this.plain(name, this.lines);
    const lines = parameters.has("tr") ? this.trailers() : this.lines;
    if (parameters.has("bs")) return wrappedLines(linesOf(name, lines));
    const key = parameters.get("key");
    if (key?.type === "string") return this.memberOf(name, lines, key.value);
    return parameters.has("sf") ? this.strict(name, lines) : this.plain(name, lines);
  }

  // Section 2.1, without parameters.
  private plain(name: string, lines: FieldLines): string {
    const value = combined(name, lines);
    if (!printableAscii.test(value)) {
      throw new MessageSignatureError("covered-field-invalid", "a covered field is not printable ASCII");
    }
    return value;
  }

  // Section 2.1.1.
  private strict(name: string, lines: FieldLines): string {
    const type = fieldTypeOf(name, this.types);
    if (type === undefined)
      throw new MessageSignatureError("component-parameter-unsupported", "the field's type is not known");
    const value = combined(name, lines);
    return structured(() => canonical[type](value, name));
  }

  // Section 2.1.2: a key that is not there, and one that came twice, has no value.
  private memberOf(name: string, lines: FieldLines, key: string): string {
    const value = combined(name, lines);
    const member = structured(() => parseDictionary(value, name)).get(key);
    if (member !== undefined) return serializeMember(member);
    throw new MessageSignatureError("covered-field-missing", "a covered member is not in its dictionary");
  }

  // Section 2.1.4.
  private trailers(): FieldLines {
    this.trailerLines ??= collectFieldLines(this.rawTrailers ?? []);
    return this.trailerLines;
  }
}

function combined(name: string, lines: FieldLines): string {
  return combinedFieldValue(linesOf(name, lines)) ?? "";
}

function linesOf(name: string, fields: FieldLines): readonly string[] {
  const lines = fields.get(name);
  if (lines === undefined) {
    throw new MessageSignatureError("covered-field-missing", "a covered field is not in the message");
  }
  if (lines.length > 1 && singletonFields.has(name)) {
    throw new MessageSignatureError("covered-field-repeated", "a covered field of one value came twice");
  }
  return lines;
}

// Section 2.1.3: each line by itself, so that no comma is read as a boundary.
function wrappedLines(lines: readonly string[]): string {
  return lines.map((line) => `:${bytesOf(trimWhitespace(line)).toString("base64")}:`).join(", ");
}

// Node gives a character for a byte. No field line has CR, LF or NUL (RFC 9110 section 5.5).
function bytesOf(line: string): Buffer {
  for (let index = 0; index < line.length; index++) {
    const code = line.charCodeAt(index);
    if (code > 0xff || code === 0x0a || code === 0x0d || code === 0) {
      throw new MessageSignatureError("covered-field-invalid", "a covered field holds what is no field line");
    }
  }
  return Buffer.from(line, "latin1");
}

const canonical: Readonly<Record<FieldType, (value: string, name: string) => string>> = {
  dictionary: (value, name) => serializeDictionary(parseDictionary(value, name)),
  item: (value, name) => serializeMember(parseItem(value, name)),
  list: (value, name) => serializeList(parseList(value, name)),
};

function structured<T>(read: () => T): T {
  try {
    return read();
  } catch (error) {
    if (!(error instanceof MessageSignatureError) || error.code !== "field-invalid") throw error;
    const what = `a covered field is not structured: ${error.message}`;
    throw new MessageSignatureError("covered-field-invalid", what);
  }
}

/** Types of fields that a caller adds to those of the registry, by lower-case name. */
export type FieldTypes = Readonly<Record<string, "dictionary" | "item" | "list">>;
type FieldType = FieldTypes[string];

// The column "Structured Type" of the IANA HTTP Field Name registry, as far as fields of requests and answers are signed.
const registered: Readonly<Record<FieldType, ReadonlySet<string>>> = {
  dictionary: new Set([
    "accept-signature",
    "cdn-cache-control",
    "content-digest",
    "priority",
    "repr-digest",
    "reporting-endpoints",
    "signature",
    "signature-input",
    "want-content-digest",
    "want-repr-digest",
  ]),
  item: new Set([
    "capsule-protocol",
    "client-cert",
    "cross-origin-embedder-policy",
    "cross-origin-opener-policy",
    "origin-agent-cluster",
    "sec-ch-ua-mobile",
    "sec-ch-ua-platform",
    "sec-fetch-dest",
    "sec-fetch-mode",
    "sec-fetch-site",
    "sec-fetch-user",
  ]),
  list: new Set(["accept-ch", "cache-status", "client-cert-chain", "proxy-status", "sec-ch-ua"]),
};

/** The type of a structured field; undefined when it is not known. The registry is not overridden. */
export function fieldTypeOf(name: string, added: FieldTypes | undefined): FieldType | undefined {
  const known = (["dictionary", "item", "list"] as const).find((type) => registered[type].has(name));
  if (known !== undefined || added === undefined) return known;
  return Object.hasOwn(added, name) ? added[name] : undefined;
}
