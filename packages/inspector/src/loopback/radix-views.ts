import { at, ViewBuilder, type View } from "./view.ts";

/** Digits that stand for bits. */
export interface Radix {
  readonly bits: number;
  /** By byte: the value of a digit, -1 for none, -2 for what stands between digits. */
  readonly values: Int32Array;
  /** At how many digits a byte may begin. */
  readonly offsets: number;
  /** Fewer hold no secret. */
  readonly fewest: number;
}

function radixOf(bits: number, alphabets: readonly string[]): Radix {
  const values = new Int32Array(256).fill(-1);
  for (const alphabet of alphabets)
    for (const [value, digit] of Buffer.from(alphabet, "latin1").entries()) values[digit] = value;
  for (const space of " \t\r\n") values[space.charCodeAt(0)] = -2;
  return { bits, values, offsets: bits === 6 ? 4 : 2, fewest: Math.ceil(32 / bits) };
}

const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZ";
const base64Digits = `${letters}${letters.toLowerCase()}0123456789`;
// RFC 4648 sections 4, 5 and 8; a secret may be wrapped.
export const base64: Radix = radixOf(6, [`${base64Digits}+/`, `${base64Digits}-_`]);
export const hex: Radix = radixOf(4, ["0123456789abcdef", "0123456789ABCDEF"]);
const pad = 0x3d;

interface Run {
  readonly from: number;
  readonly to: number;
}

/** The runs of digits that are long enough for a secret. */
function runsOf({ bytes, starts }: View, { values, fewest }: Radix): readonly Run[] {
  const runs: Run[] = [];
  let [from, digits] = [0, 0];
  for (let index = 0; index <= bytes.length; index += 1) {
    const byte = at(bytes, index);
    const value = byte <= 0 ? -1 : at(values, byte);
    if (value >= 0) digits += 1;
    if (value !== -1) continue;
    if (digits >= fewest && at(starts, from) >= 0) runs.push({ from, to: index });
    [from, digits] = [index + 1, 0];
  }
  return runs;
}

/** The bytes of each run of digits, once for each digit at which a byte may begin. */
export function radixViews(view: View, radix: Radix): readonly View[] {
  const runs = runsOf(view, radix);
  if (runs.length === 0) return [];
  return Array.from({ length: radix.offsets }, (_, offset) => {
    const built = new ViewBuilder(
      runs.reduce((sum, { from, to }) => sum + Math.ceil(((to - from) * radix.bits) / 8) + 1, 0),
    );
    for (const run of runs) decodeRun(view, built, { radix, run, offset });
    return built.view();
  }).filter((decoded) => decoded !== undefined);
}

function decodeRun(
  { bytes, starts, ends }: View,
  built: ViewBuilder,
  { radix, run, offset }: { readonly radix: Radix; readonly run: Run; readonly offset: number },
): void {
  const { bits, values } = radix;
  const { from, to } = run;
  const begun = built.length;
  let [skipped, held, buffer, before] = [0, 0, 0, from];
  for (let index = from; index < to; index += 1) {
    const value = at(values, at(bytes, index));
    if (value < 0) continue;
    if (skipped < offset) {
      skipped += 1;
      continue;
    }
    const first = held === 0 ? index : before;
    buffer = ((buffer << bits) | value) & 0xff_ff;
    held += bits;
    before = index;
    if (held < 8) continue;
    held -= 8;
    built.add((buffer >> held) & 0xff, at(starts, first), at(ends, index));
  }
  if (built.length === begun) return;
  const padding = at(bytes, to) === pad ? (at(bytes, to + 1) === pad ? 2 : 1) : 0;
  if (bits === 6 && padding > 0) built.lengthen(at(ends, to + padding - 1));
  built.addBreak();
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
