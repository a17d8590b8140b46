import type { Row } from "./near-miss.ts";

const base64 = /^[A-Za-z0-9+/]+={0,2}$/;

export function signatureForms(received: Uint8Array): readonly Row<Uint8Array>[] {
  const bytes = Buffer.from(received);
  return [...textForms(bytes.toString("latin1").trim()), ...binaryForms(bytes)].map(([what, how, form]) => {
    return [what, how, form === false ? [] : [form], what === "signature-hex" ? "usual" : undefined];
  });
}

type Form = readonly [what: string, how: string, bytes: Buffer | false];

const maxText = 4096;

function textForms(text: string): readonly Form[] {
  if (text.length > maxText) return [];
  const bare = text.replaceAll(/^["':\s]+|["':\s]+$/g, "");
  const bytes = Buffer.from(bare, "base64");
  const inner = bytes.toString("latin1");
  const isHex = /^(?:0x)?(?:[0-9a-f]{2}[: ]?)+$/i.test(bare);
  const isInnerHex = base64.test(bare) && /^[0-9a-f]{64,}$/i.test(inner);
  const isBase64url = /^[A-Za-z0-9_-]+={0,2}$/.test(bare);
  return [
    ["signature-hex", "in hex", isHex && Buffer.from(bare.replaceAll(/^0x|[: ]/gi, ""), "hex")],
    ["signature-base64-twice", "in base64 once more", base64.test(bare) && bytes],
    ["signature-hex", "in hex, and that in base64", isInnerHex && Buffer.from(inner, "hex")],
    ["signature-base64url", "in base64url", isBase64url && Buffer.from(bare, "base64url")],
  ];
}

function binaryForms(bytes: Buffer): readonly Form[] {
  const asHex = Buffer.from(bytes.toString("base64"), "hex");
  const isLonger = bytes.length > 64;
  const isBehind = "with the message after them, as libsodium's crypto_sign gives them";
  return [
    ["signature-hex", "in hex, which was read as base64", asHex.length >= 64 && asHex],
    ["signature-with-message", isBehind, isLonger && bytes.subarray(0, 64)],
    ["signature-with-message", "with something before them", isLonger && bytes.subarray(-64)],
  ];
}
