const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/**
 * RFC 4648 section 4 bit by bit, with padding and without anything that it lets a decoder pass over. Undefined for any other text.
 * @param {string} text
 * @returns {Uint8Array | undefined}
 */
export function decodeBase64(text) {
  if (text.length % 4 !== 0) return undefined;
  const digits = text.endsWith("==") ? text.slice(0, -2) : text.endsWith("=") ? text.slice(0, -1) : text;
  let bits = "";
  for (const digit of digits) {
    const value = alphabet.indexOf(digit);
    if (value === -1) return undefined;
    bits += value.toString(2).padStart(6, "0");
  }
  const whole = bits.length - (bits.length % 8);
  if (bits.length - whole > 4 || /1/.test(bits.slice(whole))) return undefined;
  return Buffer.from((bits.slice(0, whole).match(/.{8}/g) ?? []).map((octet) => Number.parseInt(octet, 2)));
}
