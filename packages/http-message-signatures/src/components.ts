import { MessageSignatureError } from "./message-signature-error.ts";
import {
  combinedFieldValue,
  parseRequestTarget,
  type FieldLines,
  type RequestMessage,
  type RequestTarget,
} from "./request-message.ts";
import type { ComponentIdentifier } from "./serialize.ts";

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
