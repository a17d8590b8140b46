// Ed25519 by the formulas of RFC 8032 section 5.1, as far as it takes to forge: slow, and never to be used with secrets.
import { createHash } from "node:crypto";
import { privateJwk } from "./keys.mjs";

export const p = 2n ** 255n - 19n;
/** The order of the base point. */
export const L = 2n ** 252n + 27742317777372353535851937790883648493n;

const mod = (value, by = p) => ((value % by) + by) % by;
function power(base, exponent) {
  let result = 1n;
  for (let square = mod(base), rest = exponent; rest > 0n; rest >>= 1n, square = mod(square * square)) {
    if (rest & 1n) result = mod(result * square);
  }
  return result;
}
const inverse = (value) => power(value, p - 2n);
const d = mod(-121665n * inverse(121666n));
const rootOfMinusOne = power(2n, (p - 1n) / 4n);

function add([x1, y1], [x2, y2]) {
  const product = mod(d * x1 * x2 * y1 * y2);
  return [mod((x1 * y2 + x2 * y1) * inverse(1n + product)), mod((y1 * y2 + x1 * x2) * inverse(1n - product))];
}

function multiply(point, scalar) {
  let result = [0n, 1n];
  for (let double = point, rest = scalar; rest > 0n; rest >>= 1n, double = add(double, double)) {
    if (rest & 1n) result = add(result, double);
  }
  return result;
}

export function toBytes(number) {
  return Buffer.from(Buffer.from(number.toString(16).padStart(64, "0"), "hex").toReversed());
}
export function toNumber(bytes) {
  return BigInt(`0x${Buffer.from(bytes.toReversed()).toString("hex")}`);
}
const encode = ([x, y]) => toBytes(y | ((x & 1n) << 255n));

function decode(bytes) {
  const number = toNumber(bytes);
  const y = number & (2n ** 255n - 1n);
  const square = mod((y * y - 1n) * inverse(d * y * y + 1n));
  let x = power(square, (p + 3n) / 8n);
  if (mod(x * x) !== square) x = mod(x * rootOfMinusOne);
  return [(x & 1n) === number >> 255n ? x : mod(-x), y];
}

const base = decode(toBytes(mod(4n * inverse(5n))));
/** A point of order 8, as it is written. */
export const order8 = Buffer.from("26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05", "hex");

/** The private scalar and the public bytes of a key (RFC 8032 section 5.1.5). */
function keyPair(name) {
  const hash = createHash("sha512")
    .update(Buffer.from(privateJwk(name).d, "base64url"))
    .digest();
  hash[0] &= 0xf8;
  hash[31] = (hash[31] & 0x7f) | 0x40;
  const scalar = toNumber(hash.subarray(0, 32));
  return { scalar, publicBytes: Buffer.from(privateJwk(name).x, "base64url") };
}

const hashed = (R, publicBytes, message) =>
  mod(toNumber(createHash("sha512").update(R).update(publicBytes).update(message).digest()), L);

/** S = r + k a for any bytes of R: solves the equation that multiplies by the cofactor whenever R is r B plus torsion. */
export function signWithR(message, R, r) {
  const { scalar, publicBytes } = keyPair("ed25519");
  return Buffer.concat([R, toBytes(mod(r + hashed(R, publicBytes, message) * scalar, L))]);
}

/** A signature under a key of small order, which nobody needs a private key for: the first R whose hash takes the key away. */
export function signUnderSmallOrder(message, publicBytes, scalar = 0n) {
  for (let r = 1n; ; r++) {
    const R = encode(multiply(base, r));
    const k = hashed(R, publicBytes, message);
    if (k % 8n === 0n) return Buffer.concat([R, toBytes(mod(r + k * scalar, L))]);
  }
}

/** A signature under {@link mixedOrderKey}: the same, for the part of small order. */
export const signUnderMixedOrder = (message) =>
  signUnderSmallOrder(message, mixedOrderKey(), keyPair("ed25519").scalar);

/** r B with a point of order 8 added. */
export const mixedOrder = (r) => encode(add(multiply(base, r), decode(order8)));

/** The public bytes of the test key with a point of order 8 added. */
export const mixedOrderKey = () => encode(add(decode(keyPair("ed25519").publicBytes), decode(order8)));
