import { maxFieldLength, maxMembers, maxParameters } from "./limits.ts";
import { MessageSignatureError } from "./message-signature-error.ts";

/** A bare item (RFC 8941 section 3.3) as far as signatures use it. Numbers keep their type: `1` is no `1.0`. */
export type BareItem =
  | { readonly type: "integer"; readonly value: number }
  | { readonly type: "decimal"; readonly text: string }
  | { readonly type: "string"; readonly value: string }
  | { readonly type: "token"; readonly text: string }
  | { readonly type: "binary"; readonly base64: string }
  | { readonly type: "boolean"; readonly value: boolean };

/** In their order on the wire. */
export type Parameters = ReadonlyMap<string, BareItem>;

const noParameters: Parameters = new Map();
const numberSyntax = /-?(\d+)(?:\.(\d*))?/y;
const keySyntax = /[a-z*][a-z0-9_\-.*]*/y;
const tokenSyntax = /[A-Za-z*][!#$%&'*+\-.^_`|~0-9A-Za-z:/]*/y;

/** Reads structured fields (RFC 8941 section 4.2) in linear time; refuses repeated keys, non-canonical base64, Date and Display String. */
export class FieldScanner {
  private position = 0;
  private readonly text: string;
  private readonly fieldName: string;
  private readonly memberLimit: number;

  constructor(text: string, fieldName: string, memberLimit: number = maxMembers) {
    if (text.length > maxFieldLength) {
      throw new MessageSignatureError(
        "field-limit",
        `${fieldName} is longer than ${maxFieldLength} characters`,
      );
    }
    this.text = text;
    this.fieldName = fieldName;
    this.memberLimit = memberLimit;
  }

  /** RFC 8941 section 4.2.2. `readValue` reads after "="; `readFlag` gives the value of a lone key, which is refused without it. */
  readDictionary<T>(readValue: () => T, readFlag?: () => T): Map<string, T> {
    const members = new Map<string, T>();
    this.readMembers(() => {
      const key = this.readKey();
      if (members.has(key)) throw this.invalid("repeats a member");
      if (members.size === this.memberLimit) throw this.overLimit(`more than ${this.memberLimit} members`);
      if (readFlag === undefined) this.expect("=");
      else if (!this.accept("=")) {
        members.set(key, readFlag());
        return;
      }
      members.set(key, readValue());
    });
    return members;
  }

  /** RFC 8941 section 4.2.1. */
  readList<T>(readMember: () => T): T[] {
    const members: T[] = [];
    this.readMembers(() => {
      if (members.length === this.memberLimit) throw this.overLimit(`more than ${this.memberLimit} members`);
      members.push(readMember());
    });
    return members;
  }

  /** A field that is one item (RFC 8941 section 4.2, step 4). */
  readWhole<T>(readItem: () => T): T {
    this.skipSpaces();
    const item = readItem();
    this.skipSpaces();
    if (!this.atEnd()) throw this.invalid("goes on after its item");
    return item;
  }

  atInnerList(): boolean {
    return this.text[this.position] === "(";
  }

  /** The items of an inner list without its parameters (RFC 8941 section 4.2.1.2). */
  readInnerList<T>(maxItems: number, readItem: () => T): T[] {
    this.expect("(");
    const items: T[] = [];
    for (;;) {
      this.skipSpaces();
      if (this.accept(")")) return items;
      if (items.length === maxItems) throw this.overLimit(`more than ${maxItems} items in a list`);
      items.push(readItem());
      const next = this.text[this.position];
      if (next !== " " && next !== ")") throw this.invalid("has an inner list without separator or end");
    }
  }

  /** RFC 8941 section 4.2.3.2, except that a repeated key is refused. */
  readParameters(): Parameters {
    if (this.text[this.position] !== ";") return noParameters;
    const parameters = new Map<string, BareItem>();
    while (this.accept(";")) {
      this.skipSpaces();
      const key = this.readKey();
      if (parameters.has(key)) throw this.invalid("repeats a parameter");
      if (parameters.size === maxParameters) throw this.overLimit(`more than ${maxParameters} parameters`);
      parameters.set(key, this.accept("=") ? this.readBareItem() : { type: "boolean", value: true });
    }
    return parameters;
  }

  /** RFC 8941 section 4.2.3.1. */
  readBareItem(): BareItem {
    const character = this.text[this.position];
    if (character === '"') return { type: "string", value: this.readString() };
    if (character === ":") return { type: "binary", base64: this.readByteSequence().toString("base64") };
    if (character === "?") return this.readBoolean();
    if (character !== undefined && /[-0-9]/.test(character)) return this.readNumber();
    return { type: "token", text: this.read(tokenSyntax, "holds an item of an unknown or unsupported type") };
  }

  /** RFC 8941 section 4.2.5. */
  readString(): string {
    this.expect('"');
    const start = this.position;
    let escaped = false;
    for (; this.position < this.text.length; this.position++) {
      const code = this.text.charCodeAt(this.position);
      if (code === 0x22) {
        const raw = this.text.slice(start, this.position++);
        return escaped ? raw.replace(/\\(.)/g, "$1") : raw;
      }
      if (code === 0x5c) {
        escaped = true;
        const next = this.text[++this.position];
        if (next !== '"' && next !== "\\") throw this.invalid("has a bad escape in a string");
      } else if (code < 0x20 || code > 0x7e) {
        throw this.invalid("has a character outside printable ASCII in a string");
      }
    }
    throw this.invalid("has a string without end");
  }

  /** RFC 8941 section 4.2.7, canonical by RFC 4648 sections 3.2 and 3.5: `Buffer.from` takes several spellings for the same bytes. */
  readByteSequence(): Buffer {
    this.expect(":");
    const end = this.text.indexOf(":", this.position);
    if (end === -1) throw this.invalid("has a byte sequence without end");
    const base64 = this.text.slice(this.position, end);
    const bytes = Buffer.from(base64, "base64");
    if (bytes.toString("base64") !== base64) throw this.invalid("has bytes that are not canonical base64");
    this.position = end + 1;
    return bytes;
  }

  /** Refuses a well-formed value of another shape than the field allows. */
  invalid(what: string): MessageSignatureError {
    return new MessageSignatureError("field-invalid", `${this.fieldName} ${what}`);
  }

  private readMembers(readMember: () => void): void {
    this.skipSpaces();
    if (this.atEnd()) throw this.invalid("is empty");
    for (;;) {
      readMember();
      this.skipOptionalWhitespace();
      if (this.atEnd()) return;
      this.expect(",");
      this.skipOptionalWhitespace();
      if (this.atEnd()) throw this.invalid("ends with a comma");
    }
  }

  private readKey(): string {
    return this.read(keySyntax, "has a key that is not lower-case or is missing");
  }

  private read(syntax: RegExp, fault: string): string {
    const start = this.position;
    syntax.lastIndex = start;
    if (!syntax.test(this.text)) throw this.invalid(fault);
    this.position = syntax.lastIndex;
    return this.text.slice(start, this.position);
  }

  // RFC 8941 section 4.2.4: at most 15 digits, or 12 before and 3 after the point.
  private readNumber(): BareItem {
    numberSyntax.lastIndex = this.position;
    const [text, whole, fraction] = numberSyntax.exec(this.text) ?? [];
    if (text === undefined || whole === undefined) throw this.invalid("has a number without digits");
    this.position += text.length;
    if (fraction === undefined) {
      if (whole.length > 15) throw this.invalid("has an integer of more than 15 digits");
      return { type: "integer", value: Number(text) + 0 };
    }
    if (whole.length > 12 || fraction.length < 1 || fraction.length > 3)
      throw this.invalid("has a malformed decimal");
    return { type: "decimal", text: canonicalDecimal(text.startsWith("-"), whole, fraction) };
  }

  private readBoolean(): BareItem {
    const value = this.text[this.position + 1];
    if (value !== "0" && value !== "1") throw this.invalid("has a malformed boolean");
    this.position += 2;
    return { type: "boolean", value: value === "1" };
  }

  private atEnd(): boolean {
    return this.position === this.text.length;
  }

  private accept(character: string): boolean {
    if (this.text[this.position] !== character) return false;
    this.position++;
    return true;
  }

  private expect(character: string): void {
    if (!this.accept(character)) throw this.invalid(`lacks a "${character}"`);
  }

  private skipSpaces(): void {
    while (this.text[this.position] === " ") this.position++;
  }

  private skipOptionalWhitespace(): void {
    while (this.text[this.position] === " " || this.text[this.position] === "\t") this.position++;
  }

  private overLimit(what: string): MessageSignatureError {
    return new MessageSignatureError("field-limit", `${this.fieldName} has ${what}`);
  }
}

// RFC 8941 section 4.1.5: no superfluous zeros, at least one digit on each side, no sign on zero.
function canonicalDecimal(negative: boolean, whole: string, fraction: string): string {
  const digits = `${whole.replace(/^0+(?=\d)/, "")}.${fraction.replace(/(?<=\d)0+$/, "")}`;
  return negative && digits !== "0.0" ? `-${digits}` : digits;
}

/** RFC 8941 section 4.1.1.2. */
export function serializeParameters(parameters: Parameters): string {
  let text = "";
  for (const [key, item] of parameters) {
    text += item.type === "boolean" && item.value ? `;${key}` : `;${key}=${serializeBareItem(item)}`;
  }
  return text;
}

/** RFC 8941 section 4.1.3.1. */
export function serializeBareItem(item: BareItem): string {
  switch (item.type) {
    case "integer":
      return String(item.value);
    case "string":
      return serializeString(item.value);
    case "boolean":
      return item.value ? "?1" : "?0";
    case "binary":
      return `:${item.base64}:`;
    default:
      return item.text;
  }
}

/** RFC 8941 section 4.1.6, of printable ASCII. */
export function serializeString(value: string): string {
  return /["\\]/.test(value) ? `"${value.replace(/["\\]/g, "\\$&")}"` : `"${value}"`;
}
