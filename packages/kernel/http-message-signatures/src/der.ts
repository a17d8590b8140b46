/** Where the contents of an element begin, and where they end: beyond the end of what is cut short. */
export interface DerElement {
  readonly from: number;
  readonly to: number;
}

/** The element with this tag at `start`; undefined when another is there, or its length is not in DER (X.690 section 10.1). */
export function derElement(der: Buffer, start: number, tag: number): DerElement | undefined {
  const first = der[start + 1] ?? 0xff;
  if (der[start] !== tag) return undefined;
  if (first < 0x80) return { from: start + 2, to: start + 2 + first };
  // Up to 65,535: more than any key has.
  const count = first & 0x7f;
  if (count > 2 || count === 0 || der.length < start + 2 + count) return undefined;
  const length = der.readUIntBE(start + 2, count);
  const from = start + 2 + count;
  return length < (count === 1 ? 0x80 : 0x100) ? undefined : { from, to: from + length };
}

/** The bytes of n and e of an RSAPublicKey (RFC 8017 appendix A.1.1), without zeros before them; undefined when it is not in DER. */
export function rsaNumbers(der: Buffer): { readonly n: Buffer; readonly e: Buffer } | undefined {
  const sequence = derElement(der, 0, 0x30);
  const first = sequence && derElement(der, sequence.from, 0x02);
  const second = first && derElement(der, first.to, 0x02);
  if (second?.to !== der.length || sequence?.to !== der.length) return undefined;
  const n = first && positive(der.subarray(first.from, first.to));
  const e = positive(der.subarray(second.from, second.to));
  return n && e && { n, e };
}

/** The RSAPublicKey of two numbers that have no zeros before them. */
export function rsaPublicKey(n: Buffer, e: Buffer): Buffer {
  return encode(0x30, Buffer.concat([integer(n), integer(e)]));
}

// X.690 section 8.3: in two's complement, in the fewest bytes.
function positive(bytes: Buffer): Buffer | undefined {
  const [first = 0x80, second = 0] = bytes;
  if (first >= 0x80 || (first === 0 && second < 0x80)) return undefined;
  return first === 0 ? bytes.subarray(1) : bytes;
}

function integer(bytes: Buffer): Buffer {
  return encode(0x02, (bytes[0] ?? 0) < 0x80 ? bytes : Buffer.concat([Buffer.alloc(1), bytes]));
}

function encode(tag: number, contents: Buffer): Buffer {
  const { length } = contents;
  if (length < 0x80) return Buffer.concat([Buffer.from([tag, length]), contents]);
  const bytes = length < 0x100 ? [length] : [length >> 8, length & 0xff];
  return Buffer.concat([Buffer.from([tag, 0x80 | bytes.length, ...bytes]), contents]);
}
