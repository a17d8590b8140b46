import { L, mixedOrder, order8, signWithR, toBytes, toNumber } from "../hand/edwards.mjs";
import { privateJwk } from "../hand/keys.mjs";
import { vector } from "../hand/vector.mjs";

const zeros = "00".repeat(30);
const ones = "ff".repeat(30);
// Every encoding of a point of small order that a lenient decoder takes.
const smallOrder = [
  ["order-1", `01${zeros}00`],
  ["order-2", `ec${ones}7f`],
  ["order-4-even", `00${zeros}00`],
  ["order-4-odd", `00${zeros}80`],
  ["order-8-first", order8.toString("hex")],
  ["order-8-second", "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc85"],
  ["order-8-third", "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a"],
  ["order-8-fourth", "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac03fa"],
  ["order-1-sign", `01${zeros}80`],
  ["order-2-sign", `ec${ones}ff`],
  ["order-4-as-p", `ed${ones}7f`],
  ["order-4-as-p-sign", `ed${ones}ff`],
  ["order-1-as-p", `ee${ones}7f`],
  ["order-1-as-p-sign", `ee${ones}ff`],
];
const hex = (text) => Buffer.from(text, "hex");
const mismatch = { code: "signature-mismatch" };
const withS = (change) => (signature) =>
  Buffer.concat([signature.subarray(0, 32), toBytes(change(toNumber(signature.subarray(32))))]);
const flipped = (at) => (signature) => signature.map((byte, index) => (index === at ? byte ^ 1 : byte));

const orders = {
  p256: hex("ffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551"),
  p384: hex(
    "ffffffffffffffffffffffffffffffffffffffffffffffffc7634d81f4372ddf581a0db248b0a77aecec196accc52973",
  ),
};
const number = (bytes) => BigInt(`0x${bytes.toString("hex")}`);
const bigEndian = (value, length) => hex(value.toString(16).padStart(2 * length, "0"));

function ecdsa(signWith) {
  const order = orders[signWith];
  const { length } = order;
  const curve = signWith === "p256" ? "P-256" : "P-384";
  const halves = (change) => (signature) => {
    const [r, s] = change(signature.subarray(0, length), signature.subarray(length));
    return Buffer.concat([r, s]);
  };
  const zero = Buffer.alloc(length);
  const ff = Buffer.alloc(length, 0xff);
  const beyond = (value) => bigEndian(number(value) + 1n, length);
  const bad = (id, shows, change) =>
    vector(`ecdsa-${signWith}-${id}`, `${curve}: ${shows}`, { signWith, alter: halves(change), ...mismatch });
  return [
    bad("r-zero", "r of zero is refused.", (_r, s) => [zero, s]),
    bad("s-zero", "s of zero is refused.", (r) => [r, zero]),
    bad("both-zero", "r and s of zero are refused.", () => [zero, zero]),
    bad("r-order", "r of the order is refused.", (_r, s) => [order, s]),
    bad("s-order", "s of the order is refused.", (r) => [r, order]),
    bad("r-beyond", "r beyond the order is refused.", (_r, s) => [beyond(order), s]),
    bad("s-beyond", "s beyond the order is refused.", (r) => [r, beyond(order)]),
    bad("all-ones", "r and s of all ones are refused.", () => [ff, ff]),
    bad("one-one", "r and s of one are no signature.", () => [bigEndian(1n, length), bigEndian(1n, length)]),
    bad("swapped", "r and s have their order.", (r, s) => [s, r]),
    vector(
      `ecdsa-${signWith}-other-s`,
      `${curve}: s may be either of its two values; RFC 9421 asks for none.`,
      {
        signWith,
        alter: halves((r, s) => [r, bigEndian(number(order) - number(s), length)]),
      },
    ),
  ];
}

const modulus = Buffer.from(privateJwk("rsa").n, "base64url");
const plusModulus = (signature) => bigEndian(number(signature) + number(modulus), modulus.length + 1);

export const theme = "Signatures that are no signatures, although a lenient verifier may take them";
export const cases = [
  ...smallOrder.map(([name, R]) =>
    vector(
      `ed25519-r-${name}`,
      "Ed25519: R of small order is refused, although S fits it (RFC 8032 section 5.1.7 leaves it open).",
      {
        forge: (base) => signWithR(base, hex(R), 0n),
        ...mismatch,
      },
    ),
  ),
  ...[1n, 7n, 123_456_789n].map((r) =>
    vector(
      `ed25519-r-mixed-order-${r}`,
      "Ed25519: R with a part of small order is refused: the equation holds with the cofactor alone.",
      {
        forge: (base) => signWithR(base, mixedOrder(r), r),
        ...mismatch,
      },
    ),
  ),
  vector(
    "ed25519-s-plus-order",
    "Ed25519: S is below the order; the same signature with the order added is another one.",
    { alter: withS((s) => s + L), ...mismatch },
  ),
  vector("ed25519-s-plus-2-orders", "Ed25519: S with twice the order added is refused.", {
    alter: withS((s) => s + 2n * L),
    ...mismatch,
  }),
  vector("ed25519-s-plus-14-orders", "Ed25519: S that fills its 32 bytes is refused.", {
    alter: withS((s) => s + 14n * L),
    ...mismatch,
  }),
  vector("ed25519-s-order", "Ed25519: S of the order is refused.", { alter: withS(() => L), ...mismatch }),
  vector("ed25519-s-zero", "Ed25519: S of zero is no signature.", { alter: withS(() => 0n), ...mismatch }),
  vector("ed25519-s-negative", "Ed25519: the negative of S is another signature.", {
    alter: withS((s) => L - s),
    ...mismatch,
  }),
  vector("ed25519-all-zero", "Ed25519: 64 zero bytes are no signature.", {
    alter: () => Buffer.alloc(64),
    ...mismatch,
  }),
  vector("ed25519-r-flipped", "Ed25519: a bit of R makes another signature.", {
    alter: flipped(3),
    ...mismatch,
  }),
  vector("ed25519-s-flipped", "Ed25519: a bit of S makes another signature.", {
    alter: flipped(40),
    ...mismatch,
  }),
  vector("ed25519-r-sign", "Ed25519: the sign of R counts.", {
    alter: (bytes) => bytes.map((byte, at) => (at === 31 ? byte ^ 0x80 : byte)),
    ...mismatch,
  }),
  vector("ed25519-swapped", "Ed25519: R and S have their order.", {
    alter: (bytes) => Buffer.concat([bytes.subarray(32), bytes.subarray(0, 32)]),
    ...mismatch,
  }),
  ...ecdsa("p256"),
  ...ecdsa("p384"),
  vector("rsa-zero", "RSA: a signature of zero is none.", {
    signWith: "rsa",
    alter: () => Buffer.alloc(256),
    ...mismatch,
  }),
  vector("rsa-one", "RSA: a signature of one is none.", {
    signWith: "rsa",
    alter: () => bigEndian(1n, 256),
    ...mismatch,
  }),
  vector("rsa-modulus", "RSA: a signature of the modulus is refused.", {
    signWith: "rsa",
    alter: () => modulus,
    ...mismatch,
  }),
  vector("rsa-plus-modulus", "RSA: a signature with the modulus added is another one, and too long.", {
    signWith: "rsa",
    alter: plusModulus,
    ...mismatch,
  }),
  vector("rsa-negative", "RSA: the modulus less the signature is another one.", {
    signWith: "rsa",
    alter: (bytes) => bigEndian(number(modulus) - number(bytes), 256),
    ...mismatch,
  }),
  vector("rsa-pss-zero", "RSA-PSS: a signature of zero is none.", {
    signWith: "rsaPss",
    alter: () => Buffer.alloc(256),
    ...mismatch,
  }),
  vector("rsa-pss-all-ones", "RSA-PSS: a signature beyond the modulus is refused.", {
    signWith: "rsaPss",
    alter: () => Buffer.alloc(256, 0xff),
    ...mismatch,
  }),
  vector("rsa-flipped", "RSA: a bit makes another signature.", {
    signWith: "rsa",
    alter: flipped(255),
    ...mismatch,
  }),
  vector("rsa-pss-flipped", "RSA-PSS: a bit makes another signature.", {
    signWith: "rsaPss",
    alter: flipped(255),
    ...mismatch,
  }),
  vector("hmac-zero", "HMAC: 32 zero bytes are no signature.", {
    signWith: "secret",
    alter: () => Buffer.alloc(32),
    ...mismatch,
  }),
  vector("hmac-flipped", "HMAC: the last bit counts.", {
    signWith: "secret",
    alter: flipped(31),
    ...mismatch,
  }),
];
