import { parsedJson } from "@countersign/core/internal";

/** Returns a JSON number exactly as received, "10.10" for 10.1, by JSON Pointer (RFC 6901); else undefined. Throws without jsonBody(). */
export function numberTextAt(subject: object, pointer: string): string | undefined {
  const value = valueTextAt(subject, pointer, "numberTextAt");
  return value === undefined ? undefined : matchAt(numberForm, value, 0)?.[0];
}

/** {@link numberTextAt} that also returns the characters of a string, for senders that may write either. */
export function textAt(subject: object, pointer: string): string | undefined {
  const value = valueTextAt(subject, pointer, "textAt");
  if (value === undefined) return undefined;
  if (value[0] !== '"') return matchAt(numberForm, value, 0)?.[0];
  const text: unknown = JSON.parse(value);
  return typeof text === "string" ? text : undefined;
}

function valueTextAt(subject: object, pointer: string, asked: string): string | undefined {
  const tokens = parsePointer(pointer, asked);
  const parsed = parsedJson(subject);
  if (parsed === undefined) throw new Error(`${asked}: mount jsonBody() before the handler that asks`);
  const { text } = parsed;
  let at: number | undefined = 0;
  for (const token of tokens) {
    at = childAt(text, at, token);
    if (at === undefined) return undefined;
  }
  const start = valueAt(text, at);
  return text.slice(start, endOf(text, start));
}

// All of these may assume what the parser has checked: the text is JSON, and no object has a name twice.
const whiteSpace = /[ \t\n\r]*/y;
const stringForm = /"[^"\\]*(?:\\.[^"\\]*)*"/y;
const numberForm = /-?\d[\d.eE+-]*/y;
const wordForm = /[\w.+-]+/y;
const stringOrBracket = /"[^"\\]*(?:\\.[^"\\]*)*"|[[\]{}]/g;
const arrayIndex = /^(?:0|[1-9]\d*)$/;

/** Where the member or element `token` of the object or array at `at` begins; undefined where there is none. */
function childAt(text: string, at: number, token: string): number | undefined {
  const start = valueAt(text, at);
  if (text[start] === "{") return memberAt(text, start, token);
  return text[start] === "[" && arrayIndex.test(token) ? elementAt(text, start, Number(token)) : undefined;
}

function memberAt(text: string, start: number, name: string): number | undefined {
  let position = valueAt(text, start + 1);
  while (text[position] !== "}") {
    const end = endOf(text, position);
    const value = valueAt(text, valueAt(text, end) + 1);
    if (JSON.parse(text.slice(position, end)) === name) return value;
    position = nextAt(text, value);
  }
  return undefined;
}

function elementAt(text: string, start: number, index: number): number | undefined {
  let position = valueAt(text, start + 1);
  for (let left = index; text[position] !== "]"; left -= 1) {
    if (left === 0) return position;
    position = nextAt(text, position);
  }
  return undefined;
}

/** Where the next member or element begins, or the closing bracket. */
function nextAt(text: string, at: number): number {
  const position = valueAt(text, endOf(text, at));
  return text[position] === "," ? valueAt(text, position + 1) : position;
}

function valueAt(text: string, at: number): number {
  return at + (matchAt(whiteSpace, text, at)?.[0].length ?? 0);
}

function endOf(text: string, at: number): number {
  const first = text[at];
  if (first !== "{" && first !== "[") {
    return at + (matchAt(first === '"' ? stringForm : wordForm, text, at)?.[0].length ?? 0);
  }
  let depth = 0;
  stringOrBracket.lastIndex = at;
  for (;;) {
    const token = stringOrBracket.exec(text)?.[0];
    if (token === undefined) return text.length;
    if (token === "{" || token === "[") depth += 1;
    else if (token === "}" || token === "]") depth -= 1;
    if (depth === 0) return stringOrBracket.lastIndex;
  }
}

function matchAt(form: RegExp, text: string, at: number): RegExpExecArray | null {
  form.lastIndex = at;
  return form.exec(text);
}

function parsePointer(pointer: string, asked: string): readonly string[] {
  if (typeof pointer !== "string" || !/^(?:\/(?:[^/~]|~[01])*)*$/.test(pointer)) {
    throw new TypeError(`${asked}: pointer must be a JSON Pointer such as "/amount/value" (RFC 6901)`);
  }
  return pointer
    .split("/")
    .slice(1)
    .map((token) => token.replaceAll("~1", "/").replaceAll("~0", "~"));
}
