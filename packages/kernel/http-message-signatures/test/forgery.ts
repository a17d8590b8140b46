import { createHash } from "node:crypto";
import { ed25519, ED25519_TORSION_SUBGROUP } from "@noble/curves/ed25519.js";
import { bytesToNumberLE, numberToBytesLE } from "@noble/curves/utils.js";
import { privateKey } from "./hand-signer.ts";

type Point = InstanceType<typeof ed25519.Point>;

/** The order of the base point (RFC 8032 section 5.1). */
export const L: bigint = ed25519.Point.Fn.ORDER;
export const p: bigint = ed25519.Point.Fp.ORDER;

const zeros = "00".repeat(30);
const ones = "ff".repeat(30);
/** Every encoding of a point of small order that a lenient decoder takes: eight canonical ones and six that are not. */
export const smallOrderEncodings: readonly (readonly [name: string, hex: string])[] = [
  ["order 1", `01${zeros}00`],
  ["order 2", `ec${ones}7f`],
  ["order 4, x even", `00${zeros}00`],
  ["order 4, x odd", `00${zeros}80`],
  ["order 8, first", "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05"],
  ["order 8, second", "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc85"],
  ["order 8, third", "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a"],
  ["order 8, fourth", "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac03fa"],
  ["order 1, sign of zero", `01${zeros}80`],
  ["order 2, sign of zero", `ec${ones}ff`],
  ["order 4 as p", `ed${ones}7f`],
  ["order 4 as p, sign", `ed${ones}ff`],
  ["order 1 as p + 1", `ee${ones}7f`],
  ["order 1 as p + 1, sign", `ee${ones}ff`],
];

export const torsion: readonly Point[] = ED25519_TORSION_SUBGROUP.map((hex) => ed25519.Point.fromHex(hex));

const { scalar, pointBytes } = ed25519.utils.getExtendedPublicKey(
  privateKey.export({ format: "der", type: "pkcs8" }).subarray(16),
);

/** S = r + k a for the test key and any R: it solves the equation that multiplies by the cofactor whenever R is r B plus torsion. */
export function signWith(R: Uint8Array, r: bigint, message: Uint8Array): Buffer {
  const k = bytesToNumberLE(createHash("sha512").update(R).update(pointBytes).update(message).digest());
  return Buffer.concat([R, numberToBytesLE((r + k * scalar) % L, 32)]);
}

export function withS(signature: Uint8Array, change: (s: bigint) => bigint): Buffer {
  const s = change(bytesToNumberLE(signature.subarray(32)));
  return Buffer.concat([signature.subarray(0, 32), numberToBytesLE(s, 32)]);
}
