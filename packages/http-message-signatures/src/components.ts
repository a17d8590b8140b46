import { MessageSignatureError } from "./message-signature-error.ts";
import type { ComponentIdentifier } from "./field-scanner.ts";

/** A request as it stands on the wire. */
export interface RequestMessage {
  /** The request method, in its case on the wire. */
  readonly method: string;
  /** The request target in origin-form (RFC 9112 section 3.2.1), exactly as sent: Express's `req.originalUrl`. */
  readonly target: string;
  /**
   * Field names and values in turn, in their order on the wire: Node's `req.rawHeaders`. Of the pseudo-header lines that HTTP/2 puts
   * among them `:authority` alone is read, and none is a field.
   */
  readonly rawHeaders: readonly string[];
  /** Needed only where a covered component depends on it: `@scheme`, `@target-uri`, or an `@authority` with a port. */
  readonly scheme?: "http" | "https" | undefined;
  /** For `@authority` and `@target-uri`; default `:authority` (HTTP/2) or the Host field. */
  readonly authority?: string | undefined;
}

/** The field lines of a message by lower-case name, in order. Node joins or drops repeated lines in `req.headers`. */
export type FieldLines = ReadonlyMap<string, readonly string[]>;

/** Groups `rawHeaders` by lower-case name, keeping every occurrence; `:authority` and its like stand under their whole name. */
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

/** The parts of a request target that components are computed from. */
export interface RequestTarget {
  readonly path: string;
  /** With its leading `?`; undefined when the target has none. */
  readonly query: string | undefined;
}

/**
 * Splits an origin-form target and changes nothing. A target that a router and a signer could read as two paths is refused
 * (`target-invalid`): absolute form, `//`, `\`, `#`, dot segments, encoded dots, anything outside visible ASCII.
 */
export function parseRequestTarget(target: string): RequestTarget {
  const queryStart = target.indexOf("?");
  const path = queryStart === -1 ? target : target.slice(0, queryStart);
  if (!visibleAscii.test(target) || !path.startsWith("/") || path.startsWith("//")) {
    throw new MessageSignatureError("target-invalid", "the request target is not in plain origin-form");
  }
  if (ambiguousPath.test(path) || target.includes("#") || target.includes("\\")) {
    throw new MessageSignatureError("target-invalid", "the request target can be read as more than one path");
  }
  return { path, query: queryStart === -1 ? undefined : target.slice(queryStart) };
}

const visibleAscii = /^[\x21-\x7e]+$/;
const ambiguousPath = /\/\.{1,2}(?:\/|$)|%2e/i;

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

/** The derived components of RFC 9421 section 2.2 that are computed for requests. */
export const derivedComponents = [
  "@authority",
  "@method",
  "@path",
  "@query",
  "@request-target",
  "@scheme",
  "@target-uri",
] as const;

const derivedNames: ReadonlySet<string> = new Set(derivedComponents);

/** The components that cover the query of the request target. */
export const queryCovering: readonly string[] = ["@query", "@request-target", "@target-uri"];

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

const fieldName = /^[!#$%&'*+\-.^_`|~0-9a-z]+$/;
const printableAscii = /^[\x20-\x7e]*$/;
const methodToken = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/;
const hostAndPort = /^(?:[A-Za-z0-9\-._~%!$&'()*+,;=]+|\[[0-9A-Fa-f:.]+\])(?::(\d{0,5}))?$/;

/**
 * Refuses a list of covered components that cannot be computed or could be read twice: empty, repeated, with parameters,
 * of an unknown derived name, not lower-case. Throws a MessageSignatureError.
 */
export function assertComputable(components: readonly ComponentIdentifier[]): void {
  if (components.length === 0) {
    throw new MessageSignatureError("components-empty", "the signature covers no component");
  }
  const seen = new Set<string>();
  for (const { name, parameters } of components) {
    if (parameters.size > 0) {
      throw new MessageSignatureError(
        "component-parameter-unsupported",
        "a covered component has parameters",
      );
    }
    assertName(name);
    if (seen.has(name))
      throw new MessageSignatureError("component-duplicate", "a component is covered twice");
    seen.add(name);
  }
}

/** Computes component values of one request; the target is split and the field lines are grouped once. */
export class ComponentValues {
  private readonly message: RequestMessage;
  private readonly fields: FieldLines;
  readonly target: RequestTarget;

  /** Throws a MessageSignatureError when the target or the method is not one that can be signed. */
  constructor(message: RequestMessage, fields: FieldLines) {
    this.message = message;
    this.fields = fields;
    this.target = parseRequestTarget(message.target);
    if (!methodToken.test(message.method)) {
      throw new MessageSignatureError("method-invalid", "the request method is no token");
    }
    assertOneAuthority(fields);
  }

  /** The value of one component that {@link assertComputable} let pass. */
  valueOf(name: string): string {
    switch (name) {
      case "@method":
        return this.message.method;
      case "@path":
        return this.target.path;
      case "@query":
        return this.target.query ?? "?";
      case "@request-target":
        return this.message.target;
      case "@authority":
        return this.authority();
      case "@scheme":
        return this.scheme();
      case "@target-uri":
        return `${this.scheme()}://${this.authority()}${this.message.target}`;
      default:
        return this.field(name);
    }
  }

  private field(name: string): string {
    const lines = this.fields.get(name);
    const value = combinedFieldValue(lines);
    if (lines === undefined || value === undefined) {
      throw new MessageSignatureError("covered-field-missing", "a covered field is not in the request");
    }
    if (lines.length > 1 && singletonFields.has(name)) {
      throw new MessageSignatureError("covered-field-repeated", "a covered field of one value came twice");
    }
    if (!printableAscii.test(value)) {
      throw new MessageSignatureError("covered-field-invalid", "a covered field is not printable ASCII");
    }
    return value;
  }

  private scheme(): string {
    const { scheme } = this.message;
    if (scheme === undefined) {
      throw new MessageSignatureError(
        "covered-field-missing",
        "a covered component needs the scheme, which is not known",
      );
    }
    return scheme;
  }

  // RFC 9421 section 2.2.3: lower case, without the default port of the scheme.
  private authority(): string {
    const received = this.message.authority ?? this.fields.get(":authority")?.[0] ?? this.field("host");
    // Before it is lower-cased: U+212A (Kelvin) would become a "k".
    const match = hostAndPort.exec(received);
    if (match === null)
      throw new MessageSignatureError("covered-field-invalid", "the authority is malformed");
    const authority = received.toLowerCase();
    const port = match[1];
    if (port === undefined) return authority;
    const isDefault = port === "" || Number(port) === (this.scheme() === "https" ? 443 : 80);
    return isDefault ? authority.slice(0, authority.length - port.length - 1) : authority;
  }
}

// RFC 9113 section 8.3.1: where Host names another server than :authority, a router and a signer may read two.
function assertOneAuthority(fields: FieldLines): void {
  const authorities = fields.get(":authority");
  if (authorities === undefined) return;
  const named = [...authorities, ...(fields.get("host") ?? [])].map(asciiLowerCase);
  if (authorities.length > 1 || named.some((authority) => authority !== named[0])) {
    throw new MessageSignatureError("authority-conflict", "Host and :authority name different servers");
  }
}

function asciiLowerCase(text: string): string {
  return text.replace(/[A-Z]/g, (letter) => letter.toLowerCase());
}

function assertName(name: string): void {
  if (name.startsWith("@")) {
    if (!derivedNames.has(name)) {
      throw new MessageSignatureError("component-unsupported", "an unknown derived component is covered");
    }
  } else if (!fieldName.test(name)) {
    throw new MessageSignatureError(
      "component-name-invalid",
      "a covered component is no lower-case field name",
    );
  }
}
