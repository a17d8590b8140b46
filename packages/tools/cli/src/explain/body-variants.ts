import { createHash } from "node:crypto";

/** A form that a body may have had when its sender computed a digest or HMAC. */
export interface BodyVariant {
  readonly what: string;
  readonly says: string;
  /** Made on first use: each takes milliseconds of a long body, and others get a turn in between. */
  readonly bytes: () => Buffer;
}

/** Of longer bodies no other form is tried for a signature: making one blocks the event loop. */
export const maxSignedBodyBytes = 32_768;

type Row = readonly [what: string, says: string, make: () => string | Buffer];

/** Lists the usual other forms of a body; only the empty one if it is unknown, or longer than `maxBytes`. */
export function bodyVariants(
  body: Uint8Array | undefined,
  maxBytes: number = maxSignedBodyBytes,
): readonly BodyVariant[] {
  const rows = body === undefined || body.length > maxBytes ? [] : formsOf(Buffer.from(body));
  const empty: Row = ["empty-body", "an empty body", () => ""];
  return [...rows, empty].map(([what, says, make]) => {
    let made: Buffer | undefined;
    return { what, says, bytes: () => (made ??= bytesOf(make)) };
  });
}

function bytesOf(make: () => string | Buffer): Buffer {
  try {
    const content = make();
    return typeof content === "string" ? Buffer.from(content, "utf8") : content;
  } catch {
    // JSON that is too deep to be serialised, or text that has no URL encoding.
    return Buffer.alloc(0);
  }
}

function formsOf(bytes: Buffer): readonly Row[] {
  const text = bytes.toString("utf8");
  const digest = (): Buffer => createHash("sha256").update(bytes).digest();
  return [
    ["body-with-line-feed", "the body with a line feed after it", () => `${text}\n`],
    ["body-with-crlf", "the body with CR and LF after it", () => `${text}\r\n`],
    ["body-without-line-end", "the body without the line end after it", () => text.replace(/\r?\n$/, "")],
    ["body-trimmed", "the body without the white space around it", () => text.trim()],
    ["body-line-ends", "the body with LF in place of CR LF", () => text.replaceAll("\r\n", "\n")],
    ["body-line-ends", "the body with CR LF in place of LF", () => text.replaceAll(/\r?\n/g, "\r\n")],
    ...jsonVariants(text),
    ["body-latin1", "the body in ISO 8859-1", () => Buffer.from(text, "latin1")],
    ["body-double-encoded", "the body encoded as UTF-8 twice", () => bytes.toString("latin1")],
    ["body-hashed", "the SHA-256 digest of the body", digest],
    ["body-hashed", "the SHA-256 digest of the body in hex", () => digest().toString("hex")],
    ["body-object-text", "the text [object Object]", () => "[object Object]"],
    ["body-empty-object", "an empty JSON object", () => "{}"],
  ];
}

function jsonVariants(text: string): readonly Row[] {
  let value: unknown;
  try {
    value = JSON.parse(text.replace(/^\ufeff/, ""));
  } catch {
    return [];
  }
  const again = "the JSON serialised again";
  const compact = (): string => JSON.stringify(value);
  const spaced = (): string => spacedJson(compact());
  const sorted = (): string => JSON.stringify(value, sortedMembers);
  const rows: readonly (readonly [says: string, make: () => string])[] = [
    [`${again}, without spaces`, compact],
    [`${again}, indented by two spaces`, () => JSON.stringify(value, null, 2)],
    [`${again}, indented by four spaces`, () => JSON.stringify(value, null, 4)],
    [`${again}, with spaces after colons and commas`, spaced],
    [`${again}, its keys sorted`, sorted],
    [`${again}, everything beyond ASCII escaped`, () => asciiJson(compact())],
    [`${again}, with spaces, everything beyond ASCII escaped`, () => asciiJson(spaced())],
    [`${again}, with escaped slashes`, () => compact().replaceAll("/", "\\/")],
    [`${again}, with < > and & escaped`, () => compact().replaceAll(/[<>&]/g, unicodeEscape)],
    ["the JSON serialised twice, as a string", () => JSON.stringify(compact())],
  ];
  return rows.map(([says, make]) => ["body-re-serialised", says, make]);
}

function spacedJson(compact: string): string {
  return compact.replaceAll(/"(?:[^"\\]|\\.)*"|[:,]/g, (token) =>
    token === ":" || token === "," ? `${token} ` : token,
  );
}

function asciiJson(text: string): string {
  return text.replaceAll(/[^\x20-\x7e]/g, unicodeEscape);
}

function unicodeEscape(character: string): string {
  return `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`;
}

// JSON.parse has bounded the depth by its own stack.
function sortedMembers(_name: string, value: unknown): unknown {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return value;
  const entries = Object.entries(value);
  entries.sort(([one], [other]) => (one < other ? -1 : 1));
  return Object.fromEntries(entries);
}
