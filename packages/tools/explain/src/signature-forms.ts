/** The bytes of a signature as they may be meant. */
export interface SignatureForm {
  readonly what: string;
  /** Behind "they are there …". */
  readonly says: string;
  readonly bytes: Buffer;
}

const maxText = 4096;
const hex = /^(?:0x)?(?:[0-9a-f]{2}[: ]?)+$/i;
const base64 = /^[A-Za-z0-9+/]+={0,2}$/;
const base64url = /^[A-Za-z0-9_-]+={0,2}$/;

/** What the received bytes can be, if they are not the signature themselves. */
export function signatureForms(received: Uint8Array): readonly SignatureForm[] {
  const bytes = Buffer.from(received);
  return [...textForms(bytes.toString("latin1")), ...binaryForms(bytes)];
}

/** What a text in the place of a byte sequence can be: base64, base64url and hex, quoted or not, with or without colons. */
export function textForms(text: string): readonly SignatureForm[] {
  if (text.length > maxText) return [];
  const bare = text
    .trim()
    .replace(/^["':]+|["':]+$/g, "")
    .trim();
  const bytes = Buffer.from(bare, "base64");
  const inner = bytes.toString("latin1");
  const digits = bare.replaceAll(/^0x|[: ]/gi, "");
  const isInnerHex = base64.test(bare) && /^[0-9a-f]{64,}$/i.test(inner);
  return formsOf([
    ["signature-hex", "in hex", hex.test(bare) && Buffer.from(digits, "hex")],
    ["signature-base64-twice", "in base64 once more", base64.test(bare) && bytes],
    ["signature-hex", "in hex, and that in base64", isInnerHex && Buffer.from(inner, "hex")],
    ["signature-base64url", "in base64url", base64url.test(bare) && Buffer.from(bare, "base64url")],
  ]);
}

function formsOf(
  rows: readonly (readonly [what: string, says: string, bytes: Buffer | false | undefined])[],
): readonly SignatureForm[] {
  return rows.flatMap(([what, says, bytes]) => (bytes instanceof Buffer ? [{ what, says, bytes }] : []));
}

function binaryForms(bytes: Buffer): readonly SignatureForm[] {
  const asHex = Buffer.from(bytes.toString("base64"), "hex");
  const isLonger = bytes.length > 64;
  const isPair = bytes.length === 64 || bytes.length === 96;
  const half = bytes.length / 2;
  const r = bytes.subarray(0, half);
  const s = bytes.subarray(half);
  const isBehind = "with the message behind them, as libsodium's crypto_sign gives them";
  return formsOf([
    ["signature-der", "in DER, not as r and s", rawOfDer(bytes, 32)],
    ["signature-der", "in DER, not as r and s", rawOfDer(bytes, 48)],
    ["signature-hex", "in hex, which was read as base64", asHex.length >= 64 && asHex],
    ["signature-with-message", isBehind, isLonger && bytes.subarray(0, 64)],
    ["signature-with-message", "with something before them", isLonger && bytes.subarray(-64)],
    ["signature-reversed", "from the last to the first", isPair && reversed(bytes)],
    ["signature-reversed", "with their halves exchanged", isPair && Buffer.concat([s, r])],
    [
      "signature-reversed",
      "with each half from the last to the first",
      isPair && Buffer.concat([reversed(r), reversed(s)]),
    ],
  ]);
}

function reversed(bytes: Buffer): Buffer {
  const copy = Buffer.from(bytes);
  copy.reverse();
  return copy;
}

// A sequence of two integers (RFC 3279 section 2.2.3).
function rawOfDer(der: Buffer, size: number): Buffer | undefined {
  if (der[0] !== 0x30 || der[1] !== der.length - 2) return undefined;
  const r = integerAt(der, 2, size);
  const s = r === undefined ? undefined : integerAt(der, r.end, size);
  return r === undefined || s === undefined || s.end !== der.length
    ? undefined
    : Buffer.concat([r.bytes, s.bytes]);
}

function integerAt(der: Buffer, at: number, size: number): { bytes: Buffer; end: number } | undefined {
  const length = der[at + 1] ?? 0;
  const end = at + 2 + length;
  if (der[at] !== 0x02 || end > der.length) return undefined;
  const value = der.subarray(at + 2, end);
  const significant = value[0] === 0 ? value.subarray(1) : value;
  if (significant.length > size) return undefined;
  return { bytes: Buffer.concat([Buffer.alloc(size - significant.length), significant]), end };
}
