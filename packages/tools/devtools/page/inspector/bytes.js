// Bytes as they were received: every byte can be seen.

import { block, html, signOf, visible } from "./kit.js";

const unseen = /([\p{Cc}\p{Cf}\p{Zl}\p{Zp}])/u;
// A body of nothing else would be a document that nobody can scroll.
const mostSigns = 400;

/** Text in which each control character is a sign of its own colour, line feeds among them. */
function visibleParts(text) {
  const parts = text.split(unseen);
  const shown = parts.slice(0, 2 * mostSigns).map((part, index) => {
    if (index % 2 === 0) return part;
    return html`<span class="sign">${signOf(part)}</span>${part === "\n" && "\n"}`;
  });
  return [...shown, visible(parts.slice(2 * mostSigns).join(""))];
}

const width = 16;

/** Bytes in rows of sixteen: place, hex, and the printable ones of ASCII. */
function hexRows(bytes) {
  const rows = [];
  for (let start = 0; start < bytes.length; start += width) {
    const row = [...bytes.subarray(start, start + width)];
    const hex = row.map((byte) => byte.toString(16).padStart(2, "0")).join(" ");
    const text = row.map((byte) => (byte > 0x1f && byte < 0x7f ? String.fromCodePoint(byte) : "."));
    rows.push(`${start.toString(16).padStart(6, "0")}  ${hex.padEnd(width * 3 - 1)}  ${text.join("")}`);
  }
  return rows.join("\n");
}

const without = {
  "not-read": "The body was not read: a check before it has ended the request, or none of them reads bodies.",
  empty: "There is no body.",
  "not-known": "Its body is not known: it has not left yet, or node:http did not send it.",
  encoded: "Its body is compressed, so that nothing in it could be masked.",
};

/** The body of a request or an answer, as far as it was read and kept. */
export function bodyPart({ state, bytes, isCut, text, base64 }, whose) {
  if (without[state] !== undefined) return html`<p class="hint">${without[state]}</p>`;
  const size = `${bytes.toLocaleString("en")} ${bytes === 1 ? "byte" : "bytes"}`;
  const name = `${whose}: ${size}${text === undefined ? ", not UTF-8" : ""}${isCut ? ", of which the first are kept" : ""}`;
  const copied = whose.toLowerCase();
  return text === undefined
    ? block(name, base64, { shown: hexRows(bytesOf(base64)), copied: `${copied} in base64`, class: "hex" })
    : block(name, text, { shown: visibleParts(text), copied });
}

function bytesOf(base64) {
  return Uint8Array.from(atob(base64), (char) => char.codePointAt(0));
}
