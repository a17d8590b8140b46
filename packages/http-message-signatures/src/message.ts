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
  /** Trailer field names and values in turn: Node's `req.rawTrailers` once the body has ended. Without them no `;tr` is computed. */
  readonly rawTrailers?: readonly string[] | undefined;
}

/** A response as it stands on the wire. */
export interface ResponseMessage {
  /** The status code, three digits. */
  readonly status: number;
  /** As those of a request. */
  readonly rawHeaders: readonly string[];
  /** As those of a request. */
  readonly rawTrailers?: readonly string[] | undefined;
  /** The request that it answers. Without it no `;req` is computed. */
  readonly request?: RequestMessage | undefined;
}

export type Message = RequestMessage | ResponseMessage;

export function isResponse(message: Message): message is ResponseMessage {
  return "status" in message;
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

// By hand: a regular expression anchored at the end takes quadratic time on a long run of spaces inside the value.
export function trimWhitespace(value: string): string {
  let start = 0;
  let end = value.length;
  while (start < end && isWhitespace(value.charCodeAt(start))) start++;
  while (end > start && isWhitespace(value.charCodeAt(end - 1))) end--;
  return value.slice(start, end);
}

function isWhitespace(code: number): boolean {
  return code === 0x20 || code === 0x09;
}
