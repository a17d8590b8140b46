import { generateKeyPairSync, sign } from "node:crypto";
import { keyError } from "../verification-key.ts";
import type { Algorithm } from "./algorithm.ts";
import { verifyNatively } from "./ed25519.ts";

interface Curve {
  readonly name: string;
  readonly namedCurve: string;
  readonly digest: string;
  /** The DER of a SubjectPublicKeyInfo up to the coordinates of an uncompressed point (RFC 5480 section 2). */
  readonly spkiPrefix: Buffer;
  /** How many points it has (FIPS 186-5, SP 800-186 section 3.2.1). */
  readonly order: Buffer;
}

/** RFC 9421 section 3.3.4. */
export const ecdsaP256Algorithm: Algorithm = ecdsa({
  name: "P-256",
  namedCurve: "prime256v1",
  digest: "sha256",
  spkiPrefix: Buffer.from("3059301306072a8648ce3d020106082a8648ce3d03010703420004", "hex"),
  order: Buffer.from("ffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551", "hex"),
});

/** RFC 9421 section 3.3.5. */
export const ecdsaP384Algorithm: Algorithm = ecdsa({
  name: "P-384",
  namedCurve: "secp384r1",
  digest: "sha384",
  spkiPrefix: Buffer.from("3076301006072a8648ce3d020106052b8104002203620004", "hex"),
  order: Buffer.from(
    "ffffffffffffffffffffffffffffffffffffffffffffffffc7634d81f4372ddf581a0db248b0a77aecec196accc52973",
    "hex",
  ),
});

// The signature is r and s, each as long as the order (IEEE P1363); s may be either of its two values.
function ecdsa({ name, namedCurve, digest, spkiPrefix, order }: Curve): Algorithm {
  const options = { dsaEncoding: "ieee-p1363" } as const;
  const signatureLength = 2 * order.length;
  // r and s differ: their quotient is a factor in the verification, and by 1 it would be quicker.
  const placeholder = Buffer.concat([Buffer.alloc(order.length, 0x55), Buffer.alloc(order.length, 0x33)]);
  return {
    // OpenSSL imports no point off the curve or beyond the field (SP 800-56A section 5.6.2.3.3). Prime order: every point generates it.
    vet(key) {
      const der = key.export({ format: "der", type: "spki" });
      if (der.subarray(0, spkiPrefix.length).equals(spkiPrefix)) return key;
      throw keyError(
        `the point of the ${name} key is not uncompressed (04, x, y); convert it: openssl ec -pubin -in key.pem -pubout -conv_form uncompressed`,
      );
    },
    makeDecoy: () => generateKeyPairSync("ec", { namedCurve }).publicKey,
    isSigningKey: ({ type, asymmetricKeyDetails }) =>
      type === "private" && asymmetricKeyDetails?.namedCurve === namedCurve,
    sign: (key, data) => sign(digest, data, { key, ...options }),
    ...verifyNatively({
      digest,
      options,
      isSound: (signature) =>
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
