// importVerificationKey on text, its bytes and JSON: a TypeError that shows nothing of the input, or the key that the input holds.
import { importVerificationKey } from "@countersign/http-message-signatures";
import { assertProperty, attempt, words } from "../property.mjs";
import { decodeBase64 } from "../reference/base64.mjs";

// RFC 8032 section 7.1, tests 1 and 2.
const first = Buffer.from("d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a", "hex");
const second = Buffer.from("3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c", "hex");
const spki = (bytes) => Buffer.concat([Buffer.from("302a300506032b6570032100", "hex"), bytes]);
const pem = (bytes) =>
  `-----BEGIN PUBLIC KEY-----\n${spki(bytes).toString("base64")}\n-----END PUBLIC KEY-----\n`;
const jwk = (bytes, more = {}) => ({ kty: "OKP", crv: "Ed25519", x: bytes.toString("base64url"), ...more });
export const seeds = [
  pem(first),
  pem(first).replaceAll("\n", "\\n"),
  first,
  spki(second),
  first.toString("hex"),
  spki(first).toString("base64"),
  second.toString("base64url"),
  JSON.stringify(jwk(first, { kid: "key", use: "sig", alg: "EdDSA", key_ops: ["verify"] })),
  JSON.stringify({ keys: [jwk(first, { kid: "key" }), jwk(second, { kid: "other" }), { kty: "RSA" }] }),
  JSON.stringify(jwk(first, { d: first.toString("base64url") })),
  Buffer.concat([Buffer.from("302e020100300506032b657004220420", "hex"), second]),
  Buffer.alloc(32),
];
export const dictionary = [
  "-----BEGIN PUBLIC KEY-----",
  "-----END PUBLIC KEY-----",
  "-----BEGIN PRIVATE KEY-----",
  "\n",
  "\r",
  "\t",
  spki(first).toString("base64"),
  first.toString("base64"),
  second.toString("base64url"),
  first.toString("hex"),
  "ssh-ed25519 ",
  "\x00",
  "\xff",
  first.toString("latin1"),
  spki(second).toString("latin1"),
  ...words`
    \n {"kty":"OKP","crv":"Ed25519","x":" "kid":"key", "d":"", "use":"enc", "alg":"ES256", {"keys":[
    ]} "key_ops":["sign"], = == : 0x " ' 0* ] }
  `,
];

const keyid = "key";
const shownCharacters = 16;

export function run(input) {
  const text = input.toString("utf8");
  const object = attempt(() => JSON.parse(text)).value;
  const forms = [input, text, ...(typeof object === "object" && object !== null ? [object] : [])];
  return forms.map((form) => runForm(form, input, text)).join("; ");
}

function runForm(form, input, text) {
  const { value: key, error } = attempt(() => importVerificationKey(keyid, form));
  if (error === undefined) {
    assertHeld(key, input, text);
    return `${key.alg} key`;
  }
  assertProperty(error instanceof TypeError && error.cause === undefined, "a refusal is a TypeError", {
    error,
  });
  const told = error.message;
  for (const shown of [text, input.toString("latin1"), input.toString("hex"), input.toString("base64")]) {
    for (let start = 0; start + shownCharacters <= shown.length; start += 1) {
      const piece = shown.slice(start, start + shownCharacters);
      assertProperty(!told.includes(piece), "the message shows nothing of the input", { piece, told });
    }
  }
  return error.message.replaceAll(/\d+/g, "N");
}

// To multiply by the order of the group, which each import does, takes a thousand times what a parser needs.
const seen = new Set();

// A key that is accepted is the same in every form, and its bytes stand in the input.
function assertHeld({ alg, publicKey }, input, text) {
  const der = publicKey.export({ format: "der", type: "spki" });
  if (!seen.has(der.toString("hex"))) assertSameInEveryForm(publicKey, der);
  seen.add(der.toString("hex"));
  if (alg !== "ed25519") return;
  const raw = der.subarray(-32);
  assertProperty(
    heldIn(input, text).some((bytes) => bytes.includes(raw)),
    "the key stands in the input",
  );
  assertProperty(der.equals(spki(raw)), "the encoding is the one of RFC 8410");
  const y = BigInt(`0x${Buffer.from(raw.toReversed()).toString("hex")}`) & (2n ** 255n - 1n);
  assertProperty(y > 1n && y < 2n ** 255n - 20n, "the point is canonical and no trivial one");
}

function assertSameInEveryForm(publicKey, der) {
  const again = [
    der.toString("base64"),
    publicKey.export({ format: "pem", type: "spki" }),
    publicKey.export({ format: "jwk" }),
    publicKey,
  ];
  for (const form of again) {
    const { publicKey: same } = importVerificationKey(keyid, form);
    assertProperty(same.equals(publicKey), "a key is the same in every form");
  }
}

// Bytes, and base64 of which each bit counts: with its padding in a PEM, of one alphabet or the other elsewhere.
function heldIn(input, text) {
  const body = text.replace(/-----[A-Z ]+-----/g, "").replace(/\\[rn]|\s/g, "");
  const pieces = /^\s*-----BEGIN/.test(text) ? [] : (text.match(/[A-Za-z0-9+/_-]+/g) ?? []);
  const padded = pieces.map((word) => {
    const digits = word.replaceAll("-", "+").replaceAll("_", "/");
    return digits.padEnd(Math.ceil(digits.length / 4) * 4, "=");
  });
  return [input, ...[body, ...padded].map((base64) => decodeBase64(base64) ?? Buffer.alloc(0))];
}
