import { createHash } from "node:crypto";

/** A body as a sender may have had it when it computed a digest or an HMAC. */
export interface BodyVariant {
  readonly what: string;
  /** What the sender has taken instead of the bytes that it sent, as an object of a sentence. */
  readonly says: string;
  readonly bytes: Buffer;
}

/** Of a longer body no other form is made for a signature: others wait for one that is. */
export const maxSignedBodyBytes = 32_768;

/** The usual ones, those of JSON only where the body is some; none of a body longer than `maxBytes`. Of one that is not known the empty one. */
export function bodyVariants(
  body: Uint8Array | undefined,
  maxBytes: number = maxSignedBodyBytes,
): readonly BodyVariant[] {
  if (body === undefined) return [empty];
  const bytes = Buffer.from(body.buffer, body.byteOffset, body.byteLength);
  if (bytes.length > maxBytes) return [empty];
  const text = bytes.toString("utf8");
  const variants = [...textVariants(text), ...jsonVariants(bytes), ...encodedVariants(bytes, text), empty];
  return variants.filter((variant) => !variant.bytes.equals(bytes));
}

type Row = readonly [what: string, says: string, content: string | Buffer];

function variantsOf(rows: readonly Row[]): readonly BodyVariant[] {
  return rows.map(([what, says, content]) => ({
    what,
    says,
    bytes: typeof content === "string" ? Buffer.from(content, "utf8") : content,
  }));
}

const empty: BodyVariant = { what: "empty-body", says: "an empty body", bytes: Buffer.alloc(0) };

function textVariants(text: string): readonly BodyVariant[] {
  const lf = text.replaceAll("\r\n", "\n");
  return variantsOf([
    ["body-with-line-feed", "the body with a line feed behind it", `${text}\n`],
    ["body-with-crlf", "the body with CR and LF behind it", `${text}\r\n`],
    ["body-without-line-end", "the body without the line end behind it", text.replace(/\r?\n$/, "")],
    ["body-trimmed", "the body without the white space around it", text.trim()],
    ["body-line-ends", "the body with LF in place of CR LF", lf],
    ["body-line-ends", "the body with CR LF in place of LF", lf.replaceAll("\n", "\r\n")],
    ["body-byte-order-mark", "the body behind a byte order mark", `\ufeff${text}`],
    ["body-byte-order-mark", "the body without its byte order mark", text.replace(/^\ufeff/, "")],
    ["body-normalised", "the body in Unicode normalization form C", text.normalize("NFC")],
    ["body-normalised", "the body in Unicode normalization form D", text.normalize("NFD")],
  ]);
}

function encodedVariants(bytes: Buffer, text: string): readonly BodyVariant[] {
  const digest = createHash("sha256").update(bytes).digest();
  return variantsOf([
    ["body-latin1", "the body in ISO 8859-1", Buffer.from(text, "latin1")],
    ["body-utf16", "the body in UTF-16", Buffer.from(text, "utf16le")],
    ["body-double-encoded", "the body encoded as UTF-8 twice", bytes.toString("latin1")],
    ["body-base64", "the body in base64", bytes.toString("base64")],
    ["body-hex", "the body in hex", bytes.toString("hex")],
    ["body-url-encoded", "the body in URL encoding", urlEncoded(text)],
    ["body-hashed", "the SHA-256 digest of the body", digest],
    ["body-hashed", "the SHA-256 digest of the body in hex", digest.toString("hex")],
    ["body-object-text", "the text [object Object]", "[object Object]"],
    ["body-empty-object", "an empty JSON object", "{}"],
  ]);
}

function urlEncoded(text: string): string {
  try {
    return encodeURIComponent(text);
  } catch {
    return "";
  }
}

function jsonVariants(bytes: Buffer): readonly BodyVariant[] {
  try {
    return variantsOfJson(bytes, JSON.parse(bytes.toString("utf8").replace(/^\ufeff/, "")));
  } catch {
    // No JSON, or some that is too deep to be serialised.
    return [];
  }
}

function variantsOfJson(bytes: Buffer, value: unknown): readonly BodyVariant[] {
  const again = "the JSON serialised again";
  const compact = JSON.stringify(value);
  const spaced = spacedJson(compact);
  const sorted = JSON.stringify(withSortedKeys(value));
  const texts = [
    [`${again}, without spaces`, compact],
    [`${again}, indented by two spaces`, JSON.stringify(value, null, 2)],
    [`${again}, indented by four spaces`, JSON.stringify(value, null, 4)],
    [`${again}, indented by tabs`, JSON.stringify(value, null, "\t")],
    [`${again}, with spaces behind colons and commas`, spaced],
    [`${again}, its keys sorted`, sorted],
    [`${again}, its keys sorted, with spaces behind colons and commas`, spacedJson(sorted)],
    [`${again}, everything beyond ASCII escaped`, asciiJson(compact)],
    [`${again}, with spaces, everything beyond ASCII escaped`, asciiJson(spaced)],
    [`${again}, with escaped slashes`, compact.replaceAll("/", "\\/")],
    [`${again}, with < > and & escaped`, compact.replaceAll(/[<>&]/g, unicodeEscape)],
    ["the JSON serialised twice, as a string", JSON.stringify(compact)],
    ["the JSON text as a string of JSON", JSON.stringify(bytes.toString("utf8"))],
  ];
  return variantsOf(texts.map(([says = "", text = ""]) => ["body-re-serialised", says, text]));
}

// Between the tokens of compact JSON, not inside of its strings.
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
function withSortedKeys(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withSortedKeys);
  if (typeof value !== "object" || value === null) return value;
  const entries = Object.entries(value).map(([name, member]): [string, unknown] => [
    name,
    withSortedKeys(member),
  ]);
  entries.sort(([one], [other]) => (one < other ? -1 : 1));
  return Object.fromEntries(entries);
}
