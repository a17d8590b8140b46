/** Bytes that a text says in some encoding, and the place in the text that each of them is made of. */
export interface View {
  readonly bytes: Uint8Array;
  /** By byte, in units of UTF-16; negative at a break: what is before it does not touch what is behind it. */
  readonly starts: Int32Array;
  /** By byte, exclusive. */
  readonly ends: Int32Array;
}

/** Of an index beyond the end -1, which is no byte. */
export function at(list: Uint8Array | Int32Array, index: number): number {
  return list[index] ?? -1;
}

/** Makes a view, byte by byte. */
export class ViewBuilder {
  readonly #bytes: Uint8Array;
  readonly #starts: Int32Array;
  readonly #ends: Int32Array;
  #length = 0;

  constructor(capacity: number) {
    this.#bytes = new Uint8Array(capacity);
    this.#starts = new Int32Array(capacity);
    this.#ends = new Int32Array(capacity);
  }

  get length(): number {
    return this.#length;
  }

  add(byte: number, start: number, end: number): void {
    this.#bytes[this.#length] = byte;
    this.#starts[this.#length] = start;
    this.#ends[this.#length] = end;
    this.#length += 1;
  }

  /** As UTF-8; a lone surrogate too. */
  addCodePoint(code: number, start: number, end: number): void {
    if (code < 0x80) return this.add(code, start, end);
    const more = code < 0x8_00 ? 1 : code < 0x1_00_00 ? 2 : 3;
    this.add(((0xf0 << (3 - more)) & 0xff) | (code >> (6 * more)), start, end);
    for (let shift = 6 * (more - 1); shift >= 0; shift -= 6)
      this.add(0x80 | ((code >> shift) & 0x3f), start, end);
  }

  addFrom(view: View, index: number): void {
    this.add(at(view.bytes, index), at(view.starts, index), at(view.ends, index));
  }

  addBreak(): void {
    if (this.#length > 0 && at(this.#starts, this.#length - 1) >= 0) this.add(0, -1, -1);
  }

  /** The last byte is made of this too. */
  lengthen(end: number): void {
    this.#ends[this.#length - 1] = end;
  }

  shorten(length: number): void {
    this.#length = length;
  }

  view(): View | undefined {
    const length = this.#length;
    if (length === 0) return undefined;
    return {
      bytes: this.#bytes.subarray(0, length),
      starts: this.#starts.subarray(0, length),
      ends: this.#ends.subarray(0, length),
    };
  }
}

const none: View = { bytes: new Uint8Array(), starts: new Int32Array(), ends: new Int32Array() };

/** A text as UTF-8. */
export function utf8View(text: string): View {
  const built = new ViewBuilder(3 * text.length);
  for (let index = 0; index < text.length;) {
    const code = text.codePointAt(index) ?? 0;
    const next = index + (code > 0xff_ff ? 2 : 1);
    built.addCodePoint(code, index, next);
    index = next;
  }
  return built.view() ?? none;
}
