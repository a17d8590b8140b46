import { base64, hex, hexAt, radixViews, readableView } from "./radix-views.ts";
import { at, utf8View, ViewBuilder, type View } from "./view.ts";

const deepest = 4;

/**
 * A text as UTF-8, and as each of these makes of it, up to four in one another: escapes of JSON, percent-encoding, form encoding,
 * UTF-8 read as latin1, hex, base64 and base64url, also wrapped, at every offset.
 */
export function viewsOf(text: string): Generator<View> {
  return nested(utf8View(text), deepest);
}

function* nested(view: View, depth: number): Generator<View> {
  yield view;
  if (depth === 0) return;
  for (const decode of decoders) {
    const decoded = decode(view);
    if (decoded !== undefined) yield* nested(decoded, depth - 1);
  }
  for (const radix of [base64, hex]) {
    for (const decoded of radixViews(view, radix)) {
      yield decoded;
      const readable = readableView(decoded);
      if (readable !== undefined) yield* nested(readable, depth - 1);
    }
  }
}

/** How much of a view is one unit of an encoding, and what it says; a length of 0 where nothing is encoded. */
interface Unit {
  readonly length: number;
  readonly code: number;
}

const plain: Unit = { length: 0, code: 0 };

type Decoder = (view: View) => View | undefined;

/** Undefined where nothing is encoded. */
function decoder(
  marks: readonly number[],
  unitAt: (bytes: Uint8Array, index: number) => Unit,
  isText: boolean,
): Decoder {
  const isMark = new Uint8Array(256);
  for (const mark of marks) isMark[mark] = 1;
  return (view) => {
    const { bytes, starts, ends } = view;
    if (!marks.some((mark) => bytes.includes(mark))) return undefined;
    // One unit becomes no more bytes than it has.
    const built = new ViewBuilder(bytes.length);
    let isDecoded = false;
    for (let index = 0; index < bytes.length;) {
      const { length, code } = at(isMark, at(bytes, index)) === 1 ? unitAt(bytes, index) : plain;
      if (length === 0) {
        built.addFrom(view, index);
        index += 1;
        continue;
      }
      const [start, end] = [at(starts, index), at(ends, index + length - 1)];
      if (isText) built.addCodePoint(code, start, end);
      else built.add(code, start, end);
      isDecoded = true;
      index += length;
    }
    return isDecoded ? built.view() : undefined;
  };
}

const escaped = "\"\\/'\b\f\n\r\t";
const escapes = new Map(
  Array.from("\"\\/'bfnrt", (letter, index) => [letter.charCodeAt(0), escaped.charCodeAt(index)] as const),
);

/** RFC 8259 section 7, and `\xHH` of JavaScript and others. */
function escapeAt(bytes: Uint8Array, index: number): Unit {
  const letter = at(bytes, index + 1);
  if (letter === 0x78)
    return { code: hexAt(bytes, index + 2, 2), length: hexAt(bytes, index + 2, 2) < 0 ? 0 : 4 };
  if (letter === 0x75) return unicodeEscapeAt(bytes, index);
  const code = escapes.get(letter);
  return code === undefined ? plain : { code, length: 2 };
}

function unicodeEscapeAt(bytes: Uint8Array, index: number): Unit {
  const high = hexAt(bytes, index + 2, 4);
  if (high < 0) return plain;
  const isPair = high >> 10 === 0x36 && at(bytes, index + 6) === 0x5c && at(bytes, index + 7) === 0x75;
  const low = isPair ? hexAt(bytes, index + 8, 4) : -1;
  if (low >> 10 !== 0x37) return { code: high, length: 6 };
  return { code: 0x1_00_00 + ((high & 0x3_ff) << 10) + (low & 0x3_ff), length: 12 };
}

/** RFC 3986 section 2.1. */
function percentAt(bytes: Uint8Array, index: number): Unit {
  const code = hexAt(bytes, index + 1, 2);
  return code < 0 ? plain : { code, length: 3 };
}

function formAt(bytes: Uint8Array, index: number): Unit {
  return at(bytes, index) === 0x2b ? { code: 0x20, length: 1 } : percentAt(bytes, index);
}

/** A character of U+0080 to U+00FF in UTF-8, as the byte that a reader of latin1 took for it. */
function latin1At(bytes: Uint8Array, index: number): Unit {
  const second = at(bytes, index + 1);
  if (second >> 6 !== 0b10) return plain;
  return { code: ((at(bytes, index) & 0b11) << 6) | (second & 0x3f), length: 2 };
}

const decoders: readonly Decoder[] = [
  decoder([0x5c], escapeAt, true),
  decoder([0x25], percentAt, false),
  decoder([0x2b], formAt, false),
  decoder([0xc2, 0xc3], latin1At, false),
];
