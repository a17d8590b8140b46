import type { BareItem, Parameters } from "./field-scanner.ts";
import { MessageSignatureError } from "./message-signature-error.ts";
import {
  collectFieldLines,
  FieldValues,
  isResponse,
  type FieldLines,
  type FieldTypes,
  type Message,
  type RequestMessage,
} from "./message.ts";

/** The derived components of RFC 9421 section 2.2 that are computed for requests without parameters. */
export const derivedComponents = [
  "@authority",
  "@method",
  "@path",
  "@query",
  "@request-target",
  "@scheme",
  "@target-uri",
] as const;

const noParameters: Parameters = new Map();
const methodToken = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/;
const hostAndPort = /^(?:[A-Za-z0-9\-._~%!$&'()*+,;=]+|\[[0-9A-Fa-f:.]+\])(?::(\d{0,5}))?$/;
const visibleAscii = /^[\x21-\x7e]+$/;
const ambiguousPath = /\/\.{1,2}(?:\/|$)|%2e/i;

export interface RequestTarget {
  readonly path: string;
  /** With its leading `?`; undefined when the target has none. */
  readonly query: string | undefined;
}

/**
 * Splits an origin-form target unchanged. Refuses one that could be read as two paths (`target-invalid`): absolute form, `//`, `\`, `#`,
 * dot segments, encoded dots, anything outside visible ASCII.
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

/** Splits the target and groups the field lines once for all components. */
export class MessageValues {
  readonly #message: Message;
  readonly #fields: FieldValues;
  readonly #types: FieldTypes | undefined;
  /** The target of a request; undefined of a response. */
  readonly target: RequestTarget | undefined;
  #queryParams: QueryParams | undefined;
  #related: MessageValues | undefined;

  /** Throws a MessageSignatureError for a target or method that cannot be signed. */
  constructor(
    message: Message,
    lines: FieldLines = collectFieldLines(message.rawHeaders),
    types?: FieldTypes,
  ) {
    this.#message = message;
    this.#types = types;
    this.#fields = new FieldValues(message, lines, types);
    if (isResponse(message)) return;
    this.target = parseRequestTarget(message.target);
    if (!methodToken.test(message.method)) {
      throw new MessageSignatureError("method-invalid", "the request method is no token");
    }
    assertOneAuthority(lines);
  }

  /** Returns the value of a component that passed {@link assertComputable}. Throws a MessageSignatureError. */
  valueOf(name: string, parameters: Parameters = noParameters): string {
    return parameters.has("req") ? this.#ofRequest().#own(name, parameters) : this.#own(name, parameters);
  }

  // Section 2.4.
  #ofRequest(): MessageValues {
    const message = this.#message;
    if (!isResponse(message) || message.request === undefined)
      throw new TypeError("the request of a response is not known");
    this.#related ??= new MessageValues(message.request, undefined, this.#types);
    return this.#related;
  }

  #own(name: string, parameters: Parameters): string {
    if (!name.startsWith("@")) return this.#fields.valueOf(name, parameters);
    const message = this.#message;
    const { target } = this;
    if (isResponse(message) || target === undefined) return this.#status();
    switch (name) {
      case "@method":
        return message.method;
      case "@path":
        return target.path;
      case "@query":
        return target.query ?? "?";
      case "@request-target":
        return message.target;
      case "@authority":
        return this.#authority(message);
      case "@scheme":
        return schemeOf(message);
      case "@target-uri":
        return `${schemeOf(message)}://${this.#authority(message)}${message.target}`;
      default:
        return this.#queryParam(parameters.get("name"), target.query);
    }
  }

  // Section 2.2.8: a name that occurs more than once must not be covered.
  #queryParam(name: BareItem | undefined, query: string | undefined): string {
    this.#queryParams ??= parseQueryParams(query);
    if (name?.type !== "string" || !this.#queryParams.has(name.value)) {
      throw new MessageSignatureError(
        "covered-field-missing",
        "a covered query parameter is not in the query",
      );
    }
    const value = this.#queryParams.get(name.value);
    if (value !== undefined) return value;
    throw new MessageSignatureError("covered-field-repeated", "a covered query parameter is there twice");
  }

  // Section 2.2.3: lower case, without the default port of the scheme.
  #authority(message: RequestMessage): string {
    const received =
      message.authority ??
      this.#fields.lines.get(":authority")?.[0] ??
      this.#fields.valueOf("host", noParameters);
    // Before it is lower-cased: U+212A (Kelvin) would become a "k".
    const match = hostAndPort.exec(received);
    if (match === null)
      throw new MessageSignatureError("covered-field-invalid", "the authority is malformed");
    const authority = received.toLowerCase();
    const port = match[1];
    if (port === undefined) return authority;
    const isDefault = port === "" || Number(port) === (schemeOf(message) === "https" ? 443 : 80);
    return isDefault ? authority.slice(0, authority.length - port.length - 1) : authority;
  }

  #status(): string {
    const status = "status" in this.#message ? this.#message.status : undefined;
    if (Number.isInteger(status) && Number(status) >= 100 && Number(status) <= 999) return String(status);
    throw new MessageSignatureError("covered-field-invalid", "the status is no integer of three digits");
  }
}

function schemeOf({ scheme }: RequestMessage): string {
  if (scheme !== undefined) return scheme;
  throw new MessageSignatureError("covered-field-missing", "a covered component needs the unknown scheme");
}

// RFC 9113 section 8.3.1: where Host names another server than :authority, a router and a signer may read two.
function assertOneAuthority(fields: FieldLines): void {
  const authorities = fields.get(":authority") ?? [];
  const hosts = fields.get("host") ?? [];
  // RFC 9112 section 3.2: two Host lines are an error of their own, alike or not; Node's parser lets them pass.
  const isRepeated = authorities.length > 1 || hosts.length > 1;
  const [authority = hosts[0]] = authorities;
  const [host = authority] = hosts;
  if (isRepeated || (authority !== host && asciiLowerCase(authority ?? "") !== asciiLowerCase(host ?? ""))) {
    throw new MessageSignatureError(
      "authority-conflict",
      "the request names its server twice, or two of them",
    );
  }
}

function asciiLowerCase(text: string): string {
  return text.replace(/[A-Z]/g, (letter) => letter.toLowerCase());
}

/** Encoded values by encoded name; undefined stands for a repeated name. */
type QueryParams = ReadonlyMap<string, string | undefined>;

/** Re-encodes parameters (RFC 9421 section 2.2.8). Refuses a "%" without two hex digits and non-UTF-8: form parsers would change them. */
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

// Decoded as the form parser does, and in the application/x-www-form-urlencoded percent-encode set, with a space as %20.
function reencode(text: string): string {
  try {
    return encodeURIComponent(decodeURIComponent(text.replaceAll("+", " "))).replace(
      /[!'()~]/g,
      (character) => `%${character.charCodeAt(0).toString(16).toUpperCase()}`,
    );
  } catch {
    const what = "a query with covered parameters has a stray % or bytes that are no UTF-8";
    throw new MessageSignatureError("covered-field-invalid", what);
  }
}
