import { createPublicKey, generateKeyPairSync, sign, type KeyObject } from "node:crypto";
import { keyError, p256Prefix, p384Prefix } from "../public-key-bytes.ts";
import type { Algorithm } from "./algorithm.ts";
import { verifyNatively } from "./native-verification.ts";

/** A curve y^2 = x^3 - 3 x + b over the field of p, with `order` points (FIPS 186-5, SP 800-186 section 3.2.1). */
interface Curve {
  readonly name: string;
  /** The name that node:crypto has for it. */
  readonly namedCurve: string;
  readonly digest: string;
  /** The DER of a SubjectPublicKeyInfo but for its point. */
  readonly spkiPrefix: Buffer;
  readonly p: bigint;
  readonly b: bigint;
  readonly order: Buffer;
}

/** RFC 9421 section 3.3.4. */
export const ecdsaP256Algorithm: Algorithm = ecdsa({
  name: "P-256",
  namedCurve: "prime256v1",
  digest: "sha256",
  spkiPrefix: p256Prefix,
  p: 2n ** 256n - 2n ** 224n + 2n ** 192n + 2n ** 96n - 1n,
  b: 0x5ac635d8_aa3a93e7_b3ebbd55_769886bc_651d06b0_cc53b0f6_3bce3c3e_27d2604bn,
  order: Buffer.from("ffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551", "hex"),
});

/** RFC 9421 section 3.3.5. */
export const ecdsaP384Algorithm: Algorithm = ecdsa({
  name: "P-384",
  namedCurve: "secp384r1",
  digest: "sha384",
  spkiPrefix: p384Prefix,
  p: 2n ** 384n - 2n ** 128n - 2n ** 96n + 2n ** 32n - 1n,
  b: 0xb3312fa7_e23ee7e4_988e056b_e3f82d19_181d9c6e_fe814112_0314088f_5013875a_c656398d_8a2ed19d_2a85c8ed_d3ec2aefn,
  order: Buffer.from(
    "ffffffffffffffffffffffffffffffffffffffffffffffffc7634d81f4372ddf581a0db248b0a77aecec196accc52973",
    "hex",
  ),
});

// The signature is r and s, each as long as the order (IEEE P1363); s may be either of its two values.
function ecdsa(curve: Curve): Algorithm {
  const { namedCurve, digest, spkiPrefix, order } = curve;
  const options = { dsaEncoding: "ieee-p1363" } as const;
  const signatureLength = 2 * order.length;
  // r and s differ: their quotient is a factor in the verification, and by 1 it would be quicker.
  const placeholder = Buffer.concat([Buffer.alloc(order.length, 0x55), Buffer.alloc(order.length, 0x33)]);
  return {
    importKey(point) {
      assertOnCurve(point, curve);
      return createPublicKey({ key: Buffer.concat([spkiPrefix, point]), format: "der", type: "spki" });
    },
    makeDecoy: () => generateKeyPairSync("ec", { namedCurve }).publicKey,
    isSigningKey: ({ type, asymmetricKeyDetails }) =>
      type === "private" && asymmetricKeyDetails?.namedCurve === namedCurve,
    signatureLength: () => signatureLength,
    sign: (key, data) => sign(digest, data, { key, ...options }),
    ...verifyNatively({
      digest,
      options,
      isSound: (_key: KeyObject, signature) =>
        signature.length === signatureLength &&
        isScalar(signature.subarray(0, order.length), order) &&
        isScalar(signature.subarray(order.length), order),
      placeholder: () => placeholder,
    }),
  };
}

// 1 to order - 1 (FIPS 186-5 section 6.4.2, step 1).
function isScalar(bytes: Uint8Array, order: Buffer): boolean {
  return Buffer.compare(bytes, order) < 0 && bytes.some((byte) => byte !== 0);
}

// SP 800-56A section 5.6.2.3.3. The curves have prime order, so that every point on them generates the whole group.
function assertOnCurve(point: Uint8Array, { name, order, p, b }: Curve): void {
  const { length } = order;
  if (point.length !== 1 + 2 * length || point[0] !== 4) {
    throw keyError(
      `the point of the ${name} key is not uncompressed (04, x, y); convert it: openssl ec -pubin -in key.pem -pubout -conv_form uncompressed`,
    );
  }
  const x = integer(point.subarray(1, 1 + length));
  const y = integer(point.subarray(1 + length));
  if (x >= p || y >= p) throw keyError(`a coordinate of the ${name} key is not canonical; make the key anew`);
  if ((y * y - (x * x * x - 3n * x + b)) % p !== 0n) {
    throw keyError(`the point is not on the curve ${name}; the key is damaged, copy it again`);
  }
}

function integer(bytes: Uint8Array): bigint {
  return BigInt(`0x${Buffer.from(bytes).toString("hex")}`);
}
