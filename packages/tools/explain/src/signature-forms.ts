/** The bytes of a signature as they may be meant. */
export interface SignatureForm {
  readonly what: string;
  /** Behind "they are there …". */
  readonly says: string;
  readonly bytes: Buffer;
}

const maxText = 4096;

/** What the received bytes can be, if they are not the signature themselves. */
export function signatureForms(received: Uint8Array): readonly SignatureForm[] {
  const bytes = Buffer.from(received);
  return [...textForms(bytes.toString("latin1")), ...binaryForms(bytes)];
}

/** What a text in the place of a byte sequence can be: base64, base64url and hex, quoted or not, with or without colons. */
export function textForms(text: string): readonly SignatureForm[] {
  const forms: SignatureForm[] = [];
  if (text.length > maxText) return forms;
  const bare = text
    .trim()
    .replace(/^["':]+|["':]+$/g, "")
    .trim();
  if (bare === "") return forms;
  if (/^(?:0x)?(?:[0-9a-f]{2}[: ]?)+$/i.test(bare)) {
    const bytes = Buffer.from(bare.replace(/^0x/i, "").replaceAll(/[: ]/g, ""), "hex");
    forms.push({ what: "signature-hex", says: "in hex", bytes });
  }
  if (/^[A-Za-z0-9+/]+={0,2}$/.test(bare)) {
    const bytes = Buffer.from(bare, "base64");
    forms.push({ what: "signature-base64-twice", says: "in base64 once more", bytes });
    const inner = bytes.toString("latin1");
    if (/^[0-9a-f]{64,}$/i.test(inner)) {
      forms.push({
        what: "signature-hex",
        says: "in hex, and that in base64",
        bytes: Buffer.from(inner, "hex"),
      });
    }
  }
  if (/^[A-Za-z0-9_-]+={0,2}$/.test(bare)) {
    forms.push({ what: "signature-base64url", says: "in base64url", bytes: Buffer.from(bare, "base64url") });
  }
  return forms;
}

function binaryForms(bytes: Buffer): readonly SignatureForm[] {
  const forms: SignatureForm[] = [];
  for (const size of [32, 48]) {
    const raw = rawOfDer(bytes, size);
    if (raw !== undefined) forms.push({ what: "signature-der", says: "in DER, not as r and s", bytes: raw });
  }
  const asHex = Buffer.from(bytes.toString("base64"), "hex");
  if (asHex.length >= 64) {
    forms.push({ what: "signature-hex", says: "in hex, which was read as base64", bytes: asHex });
  }
  if (bytes.length > 64) {
    const message = "with the message behind them, as libsodium's crypto_sign gives them";
    forms.push({ what: "signature-with-message", says: message, bytes: bytes.subarray(0, 64) });
    forms.push({
      what: "signature-with-message",
      says: "with something before them",
      bytes: bytes.subarray(-64),
    });
  }
  if (bytes.length === 64 || bytes.length === 96) {
    const reversed = Buffer.from(bytes);
    reversed.reverse();
    forms.push({ what: "signature-reversed", says: "from the last to the first", bytes: reversed });
    const half = bytes.length / 2;
    const halves = [bytes.subarray(0, half), bytes.subarray(half)].map((part) => Buffer.from(part));
    const swapped = Buffer.concat([halves[1] ?? bytes, halves[0] ?? bytes]);
    forms.push({ what: "signature-reversed", says: "with their halves exchanged", bytes: swapped });
    for (const part of halves) part.reverse();
    forms.push({
      what: "signature-reversed",
      says: "with each half from the last to the first",
      bytes: Buffer.concat(halves),
    });
  }
  return forms;
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
