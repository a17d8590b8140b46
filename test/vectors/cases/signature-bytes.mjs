import { vector } from "../hand/vector.mjs";

const invalid = { received: false, code: "field-invalid" };
const limit = { received: false, code: "field-limit" };
const missing = { received: false, code: "signature-missing" };
// What is sent in place of the fields as they should be.
const sent = (id, shows, fields, verdict = invalid) => vector(id, shows, { fields, ...verdict });
const signatureAs = (id, shows, change, verdict) =>
  sent(
    id,
    shows,
    ({ input, base64 }) => [
      ["Signature-Input", `sig1=${input}`],
      ["Signature", change(base64)],
    ],
    verdict,
  );
const good = {};

export const theme = "Signature: what is there, and bytes in other spellings (RFC 8941, RFC 4648)";
export const cases = [
  signatureAs(
    "signature-label-alone",
    "A label of Signature without an input is not looked at.",
    (base64) => `other=:AAAA:, sig1=:${base64}:`,
    good,
  ),
  sent(
    "signature-absent",
    "Signature is not there.",
    ({ input }) => [["Signature-Input", `sig1=${input}`]],
    missing,
  ),
  sent("both-absent", "A request that is not signed.", () => [], missing),
  signatureAs("labels-differ", "No label stands in both fields.", (base64) => `sig2=:${base64}:`, missing),
  sent("signature-in-trailers", "Signatures are read from the headers.", () => [], {
    ...missing,
    message: {
      trailers: [
        ["Signature-Input", 'sig1=("@method")'],
        ["Signature", "sig1=:AAAA:"],
      ],
    },
  }),
  signatureAs("signature-empty", "Signature is empty.", () => ""),
  signatureAs(
    "signature-label-twice",
    "A signature that comes twice.",
    (base64) => `sig1=:AAAA:, sig1=:${base64}:`,
  ),
  signatureAs(
    "signature-token",
    "A signature that is a token.",
    (base64) => `sig1=${base64.replaceAll(/[=]/g, "")}`,
  ),
  signatureAs("signature-string", "A signature that is a string.", (base64) => `sig1="${base64}"`),
  signatureAs("signature-unclosed", "A byte sequence without an end.", (base64) => `sig1=:${base64}`),
  signatureAs("signature-bytes-empty", "A signature without bytes.", () => "sig1=::"),
  signatureAs("signature-parameter", "A signature with a parameter.", (base64) => `sig1=:${base64}:;a=1`),
  signatureAs("signature-inner-list", "A signature that is an inner list.", (base64) => `sig1=(:${base64}:)`),
  signatureAs(
    "base64-unpadded",
    "base64 without its padding.",
    (base64) => `sig1=:${base64.replaceAll("=", "")}:`,
  ),
  signatureAs("base64-padded-more", "base64 with more padding.", (base64) => `sig1=:${base64}=:`),
  signatureAs(
    "base64-url",
    "The alphabet of base64url.",
    (base64) => `sig1=:${base64.replaceAll("+", "-").replaceAll("/", "_")}:`,
    { ...invalid, alter: () => Buffer.alloc(64, 0xfb) },
  ),
  signatureAs(
    "base64-spare-bits",
    "base64 whose last character has bits that belong to no byte.",
    (base64) => `sig1=:${base64.replace(/.==$/, (end) => `${nextCharacter(end[0])}==`)}:`,
  ),
  signatureAs(
    "base64-space",
    "base64 with a space in it.",
    (base64) => `sig1=:${base64.slice(0, 10)} ${base64.slice(10)}:`,
  ),
  signatureAs(
    "base64-line",
    "base64 with a line feed in it.",
    (base64) => `sig1=:${base64.slice(0, 10)}\n${base64.slice(10)}:`,
  ),
  signatureAs(
    "base64-inner-padding",
    "base64 with padding in the middle.",
    (base64) => `sig1=:${base64.slice(0, 10)}==${base64.slice(12)}:`,
  ),
  sent("signature-twice-lines", "A signature that comes twice, on two lines.", ({ input, base64 }) => [
    ["Signature-Input", `sig1=${input}`],
    ["Signature", `sig1=:${base64}:`],
    ["Signature", `sig1=:${base64}:`],
  ]),
  signatureAs("signature-comma-two", "Two commas.", (base64) => `a=:AAAA:,,sig1=:${base64}:`),
  signatureAs("signature-no-comma", "Members without a comma.", (base64) => `a=:AAAA: sig1=:${base64}:`),
  signatureAs("signature-text-behind", "Text after a member.", (base64) => `sig1=:${base64}:x`),
  signatureAs(
    "base64-half-padded",
    "base64 with half its padding.",
    (base64) => `sig1=:${base64.slice(0, -1)}:`,
  ),
  signatureAs(
    "limit-signatures",
    "This engine takes no more than four signatures.",
    (base64) => `a=:AA==:, b=:AA==:, c=:AA==:, d=:AA==:, sig1=:${base64}:`,
    limit,
  ),
  signatureAs(
    "limit-signature-length",
    "This engine takes no Signature of more than 4,096 characters.",
    (base64) => `sig1=:${base64}:`.padEnd(4097, "x"),
    limit,
  ),
];

// The next character differs in a bit that is not used.
function nextCharacter(character) {
  const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  return alphabet[alphabet.indexOf(character) + 1];
}
