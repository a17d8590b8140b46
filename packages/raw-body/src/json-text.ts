import { isUtf8 } from "node:buffer";
import { GuardError } from "@countersign/guard";
import { safeParse } from "secure-json-parse";

/** A body as text and as the value that `JSON.parse` gives for it. */
export interface ParsedJson {
  readonly text: string;
  readonly value: unknown;
}

const byteOrderMark = 0xfeff;
const loneSurrogate = /\p{Surrogate}/u;

/**
 * Parses the bytes of a body strictly: UTF-8 without error, one value, no key twice in an object, no key that reaches a
 * prototype, no number beyond a double, no lone surrogate, at most `maxDepth` levels. Throws a GuardError with status 400.
 */
export function parseJsonBytes(bytes: Buffer, maxDepth: number): ParsedJson {
  if (bytes.length === 0) throw refusal("json-empty", "the body is empty, where JSON is expected");
  if (!isUtf8(bytes)) throw invalid();
  const text = withoutByteOrderMark(bytes.toString("utf8"));
  const { depth, memberCount } = scanStructure(text);
  if (depth > maxDepth) throw refusal("json-too-deep", `the JSON is nested deeper than ${maxDepth} levels`);

  const value = parseWithoutPrototypes(text);
  // Only an escape can bring a lone surrogate into text that was UTF-8.
  const parsedCount = countMembers(value, text.includes("\\u"));
  // The parser keeps the last of two members with one name; another reader of the same bytes may keep the first.
  if (parsedCount !== memberCount)
    throw refusal("json-duplicate-key", "the JSON has one key twice in an object");
  return { text, value };
}

function parseWithoutPrototypes(text: string): unknown {
  // Without an escape a forbidden key stands in the text as it is: most bodies need no second look.
  if (!/\\|__proto__|constructor/.test(text)) return parsePlain(text);
  const value: unknown = safeParse(text);
  if (value === undefined) throw invalid();
  // safeParse says null for a forbidden key too.
  if (value === null && text.trim() !== "null") {
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

/** RFC 8259 section 8.1 lets a reader ignore one byte order mark; the bytes were verified with it. */
function withoutByteOrderMark(text: string): string {
  if (text.charCodeAt(0) !== byteOrderMark) return text;
  // The parser would strip a second one.
  if (text.charCodeAt(1) === byteOrderMark) throw invalid();
  return text.slice(1);
}

/** Counts levels and members outside strings. The result is meaningful for valid JSON alone; the parser decides on that. */
function scanStructure(text: string): { readonly depth: number; readonly memberCount: number } {
  let level = 0;
  let depth = 0;
  let memberCount = 0;
  for (let index = 0; index < text.length; index += 1) {
    switch (text[index]) {
      case '"':
        index = closingQuote(text, index);
        break;
      case ":":
        memberCount += 1;
        break;
      case "{":
      case "[":
        level += 1;
        if (level > depth) depth = level;
        break;
      case "}":
      case "]":
        level -= 1;
        break;
      default:
    }
  }
  return { depth, memberCount };
}

function closingQuote(text: string, openingQuote: number): number {
  for (let quote = text.indexOf('"', openingQuote + 1); quote !== -1; quote = text.indexOf('"', quote + 1)) {
    let backslash = quote - 1;
    while (text[backslash] === "\\") backslash -= 1;
    if ((quote - backslash) % 2 === 1) return quote;
  }
  return text.length;
}

// Recursion is bounded by the depth that was checked before.
function countMembers(value: unknown, hasEscapes: boolean): number {
  if (typeof value === "string") {
    // RFC 7493 section 2.1: two different such keys become one when a database stores them as UTF-8.
    if (hasEscapes && loneSurrogate.test(value)) throw invalid();
    return 0;
  }
  if (typeof value === "number") {
    // JSON.parse makes Infinity of 1e400.
    if (!Number.isFinite(value)) throw refusal("json-number-range", "the JSON has a number beyond a double");
    return 0;
  }
  if (typeof value !== "object" || value === null) return 0;
  let count = 0;
  if (Array.isArray(value)) {
    for (const element of value) count += countMembers(element, hasEscapes);
    return count;
  }
  for (const [name, member] of Object.entries(value)) {
    if (hasEscapes && loneSurrogate.test(name)) throw invalid();
    count += 1 + countMembers(member, hasEscapes);
  }
  return count;
}

function invalid(): GuardError {
  return refusal("json-invalid", "the body is not valid JSON in UTF-8");
}

function refusal(code: string, message: string): GuardError {
  return new GuardError({ status: 400, code, message });
}
