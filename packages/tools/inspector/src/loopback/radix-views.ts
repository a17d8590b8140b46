import { at, ViewBuilder, type View } from "./view.ts";

/** Digits that stand for bits. */
export interface Radix {
  readonly bits: number;
  /** By byte: the value of a digit, -1 for none, {@link between} for what may stand between digits. */
  readonly values: Int32Array;
  /** At how many digits a byte may begin. */
  readonly offsets: number;
  /** Fewer hold no secret. */
  readonly fewest: number;
}

const between = -2;

function radixOf(bits: number, alphabets: readonly string[]): Radix {
  const values = new Int32Array(256).fill(-1);
  for (const alphabet of alphabets)
    for (const [value, digit] of Buffer.from(alphabet, "latin1").entries()) values[digit] = value;
  for (const space of " \t\r\n") values[space.charCodeAt(0)] = between;
  return { bits, values, offsets: bits === 6 ? 4 : 2, fewest: Math.ceil(32 / bits) };
}

const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZ";
const base64Digits = `${letters}${letters.toLowerCase()}0123456789`;
// RFC 4648 sections 4, 5 and 8; a secret may be wrapped.
export const base64: Radix = radixOf(6, [`${base64Digits}+/`, `${base64Digits}-_`]);
export const hex: Radix = radixOf(4, ["0123456789abcdef", "0123456789ABCDEF"]);
const pad = 0x3d;

/** The bytes of each run of digits that is long enough for a secret, once for each digit at which a byte may begin. */
export function radixViews(view: View, radix: Radix): readonly View[] {
  return Array.from({ length: radix.offsets }, (_, offset) => radixView(view, radix, offset)).filter(
    (decoded) => decoded !== undefined,
  );
}

function radixView({ bytes, starts, ends }: View, radix: Radix, offset: number): View | undefined {
  const { bits, values, fewest } = radix;
  // A byte needs more than one digit, and a run has a break in place of a further one.
  const built = new ViewBuilder(bytes.length);
  let [digits, held, buffer, before, begun] = [0, 0, 0, 0, 0];
  for (let index = 0; index <= bytes.length; index += 1) {
    const value = at(values, at(bytes, index));
    if (value === between) continue;
    if (value >= 0) {
      digits += 1;
      if (digits <= offset) continue;
      const first = held === 0 ? index : before;
      buffer = ((buffer << bits) | value) & 0xff_ff;
      held += bits;
      before = index;
      if (held < 8) continue;
      held -= 8;
      built.add((buffer >> held) & 0xff, at(starts, first), at(ends, index));
      continue;
    }
    if (digits < fewest) built.shorten(begun);
    else {
      const padding = at(bytes, index) === pad ? (at(bytes, index + 1) === pad ? 2 : 1) : 0;
      if (bits === 6 && padding > 0) built.lengthen(at(ends, index + padding - 1));
      built.addBreak();
    }
    [digits, held, begun] = [0, 0, built.length];
  }
  return built.view();
}

const fewestReadable = 4;

/** The parts of decoded bytes that are text: of bytes by chance next to nothing is. */
export function readableView(view: View): View | undefined {
  const { bytes, starts } = view;
  const built = new ViewBuilder(bytes.length + 1);
  let begun = 0;
  const endPart = (): void => {
    if (built.length - begun < fewestReadable) built.shorten(begun);
    else built.addBreak();
    begun = built.length;
  };
  for (let index = 0; index < bytes.length;) {
    const length = at(starts, index) < 0 ? 0 : readableAt(bytes, index);
    if (length === 0) endPart();
    for (let part = 0; part < length; part += 1) built.addFrom(view, index + part);
    index += Math.max(1, length);
  }
  endPart();
  return built.view();
}

/** How many bytes are the character of UTF-8 that begins here; 0 for none, and for a control character but DEL, which JSON does not escape. */
function readableAt(bytes: Uint8Array, index: number): number {
  const first = at(bytes, index);
  if (first < 0x80) return first >= 0x20 || first === 0x09 || first === 0x0a || first === 0x0d ? 1 : 0;
  const length =
    first >= 0xc2 && first < 0xe0 ? 2 : first >> 4 === 0b1110 ? 3 : first >> 3 === 0b11110 ? 4 : 0;
  for (let part = 1; part < length; part += 1) if (at(bytes, index + part) >> 6 !== 0b10) return 0;
  return length;
}

/** The number of some digits; negative where one is none. */
export function hexAt(bytes: Uint8Array, index: number, digits: number): number {
  let code = 0;
  for (let digit = 0; digit < digits; digit += 1) {
    const value = at(hex.values, Math.max(0, at(bytes, index + digit)));
    if (value < 0) return -1;
    code = code * 16 + value;
  }
  return code;
}
