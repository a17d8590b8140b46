/** Decoded bytes of a text, each with its place in the text. */
export interface View {
  /** Each byte as a character of latin1. */
  readonly bytes: string;
  /** By byte, in UTF-16 units; negative at a break, which separates what surrounds it. */
  readonly starts: readonly number[];
  /** By byte, exclusive. */
  readonly ends: readonly number[];
}

/** From a text's first UTF-16 unit to the one after its last. */
export type Mark = (start: number, end: number) => void;

const deepest = 4;

/**
 * Decodes a text in every way, up to four nested: JSON escapes, percent- and form encoding, UTF-8 read as latin1, hex, base64 and
 * base64url, also wrapped, at every offset.
 */
export function viewsOf(text: string): Generator<View> {
  return nested(utf8View(text), deepest);
}

function* nested(view: View, depth: number): Generator<View> {
  yield view;
  if (depth === 0) return;
  for (const encoding of encodings) {
    const decoded = decodedView(view, encoding);
    if (decoded !== undefined) yield* nested(decoded, depth - 1);
  }
  for (const radix of radices) {
    for (const decoded of radixViews(view, radix)) {
      yield decoded;
      const readable = readableView(decoded);
      if (readable !== undefined) yield* nested(readable, depth - 1);
    }
  }
}

class ViewBuilder {
  bytes = "";
  readonly starts: number[] = [];
  readonly ends: number[] = [];

  place(start: number, end: number): void {
    this.starts.push(start);
    this.ends.push(end);
  }

  addFrom({ bytes, starts, ends }: View, first: number, end: number): void {
    this.bytes += bytes.slice(first, end);
    for (let index = first; index < end; index += 1) this.place(starts[index] ?? -1, ends[index] ?? -1);
  }

  addBreak(): void {
    this.bytes += "\0";
    this.place(-1, -1);
  }
}

function utf8View(text: string): View {
  const built = new ViewBuilder();
  built.bytes = utf8Of(text);
  for (let start = 0; start < text.length;) {
    const code = text.codePointAt(start) ?? 0;
    const end = start + (code > 0xff_ff ? 2 : 1);
    const length = code < 0x80 ? 1 : code < 0x8_00 ? 2 : code > 0xff_ff ? 4 : 3;
    for (let byte = 0; byte < length; byte += 1) built.place(start, end);
    start = end;
  }
  return built;
}

export function utf8Of(text: string): string {
  return Buffer.from(text, "utf8").toString("latin1");
}

type Encoding = readonly [unit: RegExp, decode: (unit: string) => string];

const encodings: readonly Encoding[] = [
  // RFC 8259 section 7, and `\xHH` of JavaScript and others.
  [
    /\\(?:u[dD][89abAB][\da-fA-F]{2}\\u[dD][c-fC-F][\da-fA-F]{2}|u[\da-fA-F]{4}|x[\da-fA-F]{2}|["\\/'bfnrt])/g,
    unescaped,
  ],
  // RFC 3986 section 2.1.
  [/%[\da-fA-F]{2}/g, (unit) => String.fromCharCode(Number.parseInt(unit.slice(1), 16))],
  [/\+/g, () => " "],
  // UTF-8 that was read as latin1: U+0080 to U+00FF were bytes.
  [/[\xc2\xc3][\x80-\xbf]/g, (unit) => Buffer.from(unit, "latin1").toString("utf8")],
];

const escapes: Readonly<Record<string, string>> = { b: "\b", f: "\f", n: "\n", r: "\r", t: "\t" };

function unescaped(unit: string): string {
  const [, hex, ...more] = unit.split(/\\[ux]/);
  if (hex === undefined || hex === "") return escapes[unit.slice(1)] ?? unit.slice(1);
  return utf8Of(String.fromCharCode(...[hex, ...more].map((each) => Number.parseInt(each, 16))));
}

function decodedView(view: View, [unit, decode]: Encoding): View | undefined {
  const built = new ViewBuilder();
  let end = 0;
  for (const { index, 0: found } of view.bytes.matchAll(unit)) {
    built.addFrom(view, end, index);
    end = index + found.length;
    const decoded = decode(found);
    built.bytes += decoded;
    for (let byte = 0; byte < decoded.length; byte += 1)
      built.place(view.starts[index] ?? -1, view.ends[end - 1] ?? -1);
  }
  if (end === 0) return undefined;
  built.addFrom(view, end, view.bytes.length);
  return built;
}

interface Radix {
  readonly encoding: "base64" | "hex";
  readonly bits: number;
  readonly run: RegExp;
  readonly offsets: number;
}

// RFC 4648 sections 4, 5 and 8.
const radices: readonly Radix[] = [
  { encoding: "base64", bits: 6, run: /([\w+/ \t\r\n-]+)(={0,2})/g, offsets: 4 },
  { encoding: "hex", bits: 4, run: /([\da-fA-F \t\r\n]+)()/g, offsets: 2 },
];
// A shorter run holds no secret.
const fewestBits = 32;

/** Only runs long enough for a secret, once for each digit at which a byte may begin. */
function radixViews({ bytes, starts, ends }: View, { encoding, bits, run, offsets }: Radix): readonly View[] {
  const built = Array.from({ length: offsets }, () => new ViewBuilder());
  for (const { index, 0: found, 1: wrapped = "", 2: padding } of bytes.matchAll(run)) {
    const digits = wrapped.replaceAll(/\s+/g, "");
    if (digits.length * bits < fewestBits) continue;
    const places: number[] = [];
    for (let at = 0; at < wrapped.length; at += 1) if (wrapped.charCodeAt(at) > 0x20) places.push(index + at);
    for (const [offset, view] of built.entries()) {
      const decoded = Buffer.from(digits.slice(offset), encoding).toString("latin1");
      view.bytes += decoded;
      for (let at = 0; at < decoded.length; at += 1) {
        const first = places[offset + Math.floor((8 * at) / bits)] ?? -1;
        const isPadded = padding !== "" && at === decoded.length - 1;
        const last = isPadded ? index + found.length - 1 : places[offset + Math.floor((8 * at + 7) / bits)];
        view.place(starts[first] ?? -1, ends[last ?? -1] ?? -1);
      }
      view.addBreak();
    }
  }
  return built.filter((view) => view.bytes !== "");
}

const readable =
  /(?:[\t\n\r\x20-\x7f]+|[\xc2-\xdf][\x80-\xbf]|[\xe0-\xef][\x80-\xbf]{2}|[\xf0-\xf7][\x80-\xbf]{3})+/g;
const fewestReadable = 4;

/** Bytes decoded by chance hold almost no text. */
function readableView(view: View): View | undefined {
  const built = new ViewBuilder();
  for (const { index, 0: found } of view.bytes.matchAll(readable)) {
    if (found.length < fewestReadable) continue;
    built.addFrom(view, index, index + found.length);
    built.addBreak();
  }
  return built.bytes === "" ? undefined : built;
}
