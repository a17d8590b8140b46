import { isUtf8 } from "node:buffer";
import { safeParse } from "secure-json-parse";
import type { JsonCode } from "./codes.ts";
import { GuardError } from "./guard-error.ts";

export interface ParsedJson {
  readonly text: string;
  readonly value: unknown;
}

const byteOrderMark = 0xfeff;
const quote = 0x22;
const comma = 0x2c;
const colon = 0x3a;
const openingBracket = 0x5b;
const backslash = 0x5c;
const closingBracket = 0x5d;
const openingBrace = 0x7b;
const closingBrace = 0x7d;
const loneSurrogate = /\p{Surrogate}/u;

/**
 * Parses JSON bytes strictly: valid UTF-8, one value, no key twice in an object, no key that reaches a prototype, no number beyond a
 * double, no lone surrogate, at most `maxDepth` levels. Throws a GuardError: 400, or 413 for more than `maxValues` members and elements,
 * which are counted before any is built: the parser works in one go.
 */
export function parseJsonBytes(bytes: Buffer, maxDepth: number, maxValues: number = Infinity): ParsedJson {
  const { text, value, hasLoneSurrogate } = readJsonBytes(bytes, maxDepth, maxValues);
  if (hasLoneSurrogate) throw loneSurrogateRefusal();
  return { text, value };
}

/**
 * As {@link parseJsonBytes}, but returns text with lone surrogates, which RFC 8259 section 8.2 allows, and says that there are some. The
 * caller decides which part of the value they spoil.
 */
export function readJsonBytes(
  bytes: Buffer,
  maxDepth: number,
  maxValues: number = Infinity,
): ParsedJson & { readonly hasLoneSurrogate: boolean } {
  if (bytes.length === 0) throw refusal("json-empty", "the body is empty, where JSON is expected");
  const { isAscii, hasEscape, depth, memberCount, valueCount } = scanStructure(bytes);
  const text = isAscii ? bytes.toString("latin1") : decodeUtf8(bytes);
  if (depth > maxDepth) throw refusal("json-too-deep", `the JSON is nested deeper than ${maxDepth} levels`);
  if (valueCount > maxValues) throw tooManyValues(maxValues);

  const value = parseWithoutPrototypes(text, hasEscape);
  const parsedCount = countMembers(value);
  // The parser keeps the last of two members with one name; another reader of the same bytes may keep the first.
  if (parsedCount !== memberCount)
    throw refusal("json-duplicate-key", "the JSON has one key twice in an object");
  // Only an escape can bring a lone surrogate into text that was UTF-8.
  return { text, value, hasLoneSurrogate: hasEscape && holdsLoneSurrogate(value) };
}

function decodeUtf8(bytes: Buffer): string {
  if (!isUtf8(bytes)) throw invalid();
  return withoutByteOrderMark(bytes.toString("utf8"));
}

function parseWithoutPrototypes(text: string, hasEscape: boolean): unknown {
  // Without an escape a forbidden key stands in the text as it is: most bodies need no second look.
  if (!hasEscape && !text.includes("__proto__") && !text.includes("constructor")) return parsePlain(text);
  const value: unknown = safeParse(text);
  if (value === undefined) throw invalid();
  // Said for a forbidden key alone: the literal null has no escape.
  if (value === null) {
    throw refusal("json-forbidden-key", "the JSON has a key that reaches a prototype");
  }
  return value;
}

function parsePlain(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw invalid();
  }
}

/** RFC 8259 section 8.1 lets a reader ignore one byte order mark; a signature covers it. */
function withoutByteOrderMark(text: string): string {
  if (text.charCodeAt(0) !== byteOrderMark) return text;
  // The parser would strip a second one.
  if (text.charCodeAt(1) === byteOrderMark) throw invalid();
  return text.slice(1);
}

interface JsonStructure {
  readonly isAscii: boolean;
  readonly hasEscape: boolean;
  readonly depth: number;
  readonly memberCount: number;
  readonly valueCount: number;
}

/** Counts levels and members outside strings, for valid JSON; the parser decides whether it is. */
function scanStructure(bytes: Buffer): JsonStructure {
  let level = 0;
  let depth = 0;
  let memberCount = 0;
  let valueCount = 1;
  let bits = 0;
  let inString = false;
  let hasEscape = false;
  // On bytes: no byte of a longer UTF-8 sequence looks like one of these.
  for (let index = 0; index < bytes.length; index += 1) {
    const byte = bytes[index] ?? 0;
    bits |= byte;
    if (byte === quote) inString = !inString;
    else if (inString) {
      if (byte !== backslash) continue;
      hasEscape = true;
      index += 1;
      bits |= bytes[index] ?? 0;
    } else if (byte === colon) memberCount += 1;
    else if (byte === comma) valueCount += 1;
    else if (byte === openingBrace || byte === openingBracket) {
      valueCount += 1;
      level += 1;
      if (level > depth) depth = level;
    } else if (byte === closingBrace || byte === closingBracket) level -= 1;
  }
  return { isAscii: bits < 0x80, hasEscape, depth, memberCount, valueCount };
}

// Recursion is bounded by the depth that was checked before.
function countMembers(value: unknown): number {
  if (typeof value === "number") {
    // JSON.parse makes Infinity of 1e400.
    if (!Number.isFinite(value)) throw refusal("json-number-range", "the JSON has a number beyond a double");
    return 0;
  }
  if (typeof value !== "object" || value === null) return 0;
  let count = 0;
  if (Array.isArray(value)) {
    for (const element of value) count += countMembers(element);
    return count;
  }
  for (const member of Object.values(value)) count += 1 + countMembers(member);
  return count;
}

/** True if a name or a string of this JSON value holds half of a surrogate pair. */
export function holdsLoneSurrogate(value: unknown): boolean {
  if (typeof value === "string") return loneSurrogate.test(value);
  if (typeof value !== "object" || value === null) return false;
  if (Array.isArray(value)) return value.some(holdsLoneSurrogate);
  return Object.entries(value).some(
    ([name, member]) => loneSurrogate.test(name) || holdsLoneSurrogate(member),
  );
}

/** RFC 7493 section 2.1: two different such texts become one when a database stores them as UTF-8. */
export function loneSurrogateRefusal(): GuardError<JsonCode> {
  const message =
    "the JSON has half of a surrogate pair, such as the escape \\ud800 alone, which is no character";
  return refusal("json-lone-surrogate", message);
}

function invalid(): GuardError<JsonCode> {
  return refusal("json-invalid", "the body is not valid JSON in UTF-8");
}

function tooManyValues(maxValues: number): GuardError<JsonCode> {
  return new GuardError<JsonCode>({
    status: 413,
    code: "json-too-many-values",
    message: `the JSON has more than ${maxValues} members and elements`,
  });
}

function refusal(code: JsonCode, message: string): GuardError<JsonCode> {
  return new GuardError<JsonCode>({ status: 400, code, message });
}

const printableAscii = /^[\x20-\x7e]*$/;
const controlCharacter = /\p{Cc}/u;
// \p{Cf}: zero-width, bidi and soft-hyphen characters. \p{Cs}: lone surrogates, which have no UTF-8 form. \p{Cn}, unassigned, depends on
// Node's Unicode version; still refused, since two processes that both accepted such a key could pay twice. Other spaces of \p{Zs}, and
// U+2800, a Braille pattern without a dot, would pass for U+0020.
const unseenCharacter =
  /[\p{Cf}\p{Cs}\p{Co}\p{Cn}\p{Zl}\p{Zp}\u2800\p{Variation_Selector}\p{Default_Ignorable_Code_Point}]|(?! )\p{Zs}/u;

/**
 * Says why `text` is unfit as an identifier, such as "holds a control character"; undefined if it is fit. Two texts that look alike would
 * pass for one payment: such text is refused, never normalised.
 */
export function identifierFault(text: string): string | undefined {
  if (printableAscii.test(text)) return undefined;
  if (controlCharacter.test(text)) return "holds a control character";
  if (unseenCharacter.test(text)) return "holds an invisible, unassigned or private-use character";
  // Unicode Standard Annex 15: texts that look alike have one sequence of code points.
  return text.normalize("NFC") === text ? undefined : "is not in Unicode normalization form C";
}

const unprintable = /[^\x20-\x7e]|["\\]/g;

/** Quotes wire text for a log: `\uXXXX` outside printable ASCII, cut after `maxLength` UTF-16 units: nobody forges lines or floods logs. */
export function quoteForLog(text: string, maxLength = 64): string {
  const cut = text.length > maxLength ? text.slice(0, maxLength) : text;
  const escaped = cut.replace(unprintable, escapeOne);
  return text.length > maxLength ? `"${escaped}"... (${text.length} characters)` : `"${escaped}"`;
}

/** As {@link quoteForLog}, without the quotes: usual text stays searchable. */
export function escapeForLog(text: string, maxLength = 64): string {
  const cut = text.length > maxLength ? `${text.slice(0, maxLength)}...` : text;
  return cut.replace(unprintable, escapeOne);
}

function escapeOne(character: string): string {
  if (character === '"' || character === "\\") return `\\${character}`;
  return `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`;
}
