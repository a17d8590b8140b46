import type { SignatureAlgorithm } from "./algorithms/algorithm.ts";
import { rsaPublicKey } from "./der.ts";
import { keyError, privateKeyError, type ReadKey } from "./public-key-bytes.ts";

/** An object whose members are not known. */
export type UnknownMembers = Readonly<Record<string, unknown>>;

// RFC 7518 section 3.1, RFC 8037 section 3.1 and RFC 9864 section 2.2.
const jwkAlgorithms: ReadonlyMap<unknown, SignatureAlgorithm> = new Map([
  ["EdDSA", "ed25519"],
  ["Ed25519", "ed25519"],
  ["ES256", "ecdsa-p256-sha256"],
  ["ES384", "ecdsa-p384-sha384"],
  ["PS512", "rsa-pss-sha512"],
  ["RS256", "rsa-v1_5-sha256"],
  ["HS256", "hmac-sha256"],
]);
// RFC 7518 sections 6.2.2, 6.3.2 and 6.4.1.
const privateMembers = ["d", "p", "q", "dp", "dq", "qi", "oth"];

/** Reads a JWK (RFC 7517 section 4). Every member that is there must agree. */
export function readJwk(jwk: UnknownMembers, keyid: string): ReadKey {
  if (privateMembers.some((name) => jwk[name] !== undefined)) throw privateKeyError("the JWK");
  const { bytes, algorithms } = readKeyMembers(jwk);
  if (jwk["use"] !== undefined && jwk["use"] !== "sig") throw keyError("the JWK has another use than sig");
  const { key_ops: keyOps } = jwk;
  if (keyOps !== undefined && !(Array.isArray(keyOps) && keyOps.length === 1 && keyOps[0] === "verify")) {
    throw keyError('the JWK has other key_ops than ["verify"]');
  }
  if (jwk["kid"] !== undefined && jwk["kid"] !== keyid) throw keyError(otherKid);
  return { bytes, algorithms: narrowByAlg(jwk, algorithms, keyError) };
}

/** What a secret is read for, and how its refusals begin. */
export interface SecretUse {
  /** The kid of a JWK that has one; undefined takes any. */
  readonly keyid?: string | undefined;
  readonly operation: "sign" | "verify";
  readonly error: (what: string) => TypeError;
}

/** Reads the secret of a JWK (RFC 7518 section 6.4). */
export function readSecretJwk(jwk: UnknownMembers, { keyid, operation, error }: SecretUse): Uint8Array {
  const { kty, k, use, kid, key_ops: keyOps } = jwk;
  if (kty !== "oct") throw error('the JWK has another kty than oct, which alg: "hmac-sha256" needs');
  narrowByAlg(jwk, ["hmac-sha256"], error);
  if (use !== undefined && use !== "sig") throw error("the JWK has another use than sig");
  if (
    keyOps !== undefined &&
    !(Array.isArray(keyOps) && keyOps.includes(operation) && keyOps.every(isOperation))
  ) {
    throw error(`the JWK has other key_ops than sign and verify, or no ${operation}`);
  }
  if (kid !== undefined && keyid !== undefined && kid !== keyid) throw error(otherKid);
  return member(k, { name: "k", error });
}

const otherKid = "the JWK has another kid than the keyid it is listed under";

/** The algorithms that are left by the alg of a JWK; `error` makes the refusal of one that does not agree. */
export function narrowByAlg(
  { alg }: UnknownMembers,
  algorithms: readonly SignatureAlgorithm[],
  error: (what: string) => TypeError,
): readonly SignatureAlgorithm[] {
  if (alg === undefined) return algorithms;
  const named = jwkAlgorithms.get(alg);
  if (named !== undefined && algorithms.includes(named)) return [named];
  const fitting = [...jwkAlgorithms].filter(([, each]) => algorithms.includes(each)).map(([name]) => name);
  throw error(`the JWK has another alg than ${fitting.join(" or ")}`);
}

function isOperation(operation: unknown): boolean {
  return operation === "verify" || operation === "sign";
}

function readKeyMembers({ kty, crv, k, x, y, n, e }: UnknownMembers): ReadKey {
  if (kty === "oct" || k !== undefined) {
    throw keyError(
      'the JWK is a secret; write alg: "hmac-sha256" if both sides share it, or give a public key',
    );
  }
  if (kty === "OKP" && crv === "Ed25519")
    return { bytes: member(x, { name: "x", length: 32 }), algorithms: ["ed25519"] };
  if (kty === "EC" && crv === "P-256") return { bytes: point(x, y, 32), algorithms: ["ecdsa-p256-sha256"] };
  if (kty === "EC" && crv === "P-384") return { bytes: point(x, y, 48), algorithms: ["ecdsa-p384-sha384"] };
  if (kty === "RSA")
    return {
      bytes: rsaPublicKey(number(n, "n"), number(e, "e")),
      algorithms: ["rsa-pss-sha512", "rsa-v1_5-sha256"],
    };
  throw keyError("the JWK must have kty OKP and crv Ed25519, kty EC and crv P-256 or P-384, or kty RSA");
}

// RFC 7518 section 6.2.1: both coordinates have the full length. SEC 1 section 2.3.3 writes them as one.
function point(x: unknown, y: unknown, length: number): Uint8Array {
  return Buffer.concat([
    Buffer.from([4]),
    member(x, { name: "x", length: length }),
    member(y, { name: "y", length: length }),
  ]);
}

// RFC 7518 section 2, Base64urlUInt: in the fewest bytes.
function number(value: unknown, name: string): Buffer {
  const bytes = member(value, { name });
  // Longer numbers than any key has are refused here, where their length can still be written.
  if (bytes[0] === 0 || bytes.length > 4096) {
    throw keyError(`the ${name} of the JWK begins with a zero byte, or is longer than any key`);
  }
  return bytes;
}

/** The bytes of a member in the one spelling that they have. */
function member(
  value: unknown,
  {
    name,
    length,
    error = keyError,
  }: {
    readonly name: string;
    readonly length?: number;
    readonly error?: (what: string) => TypeError;
  },
): Buffer {
  if (typeof value !== "string") throw error(`the JWK has no ${name}`);
  const bytes = Buffer.from(value, "base64url");
  if (
    bytes.length !== (length ?? bytes.length) ||
    bytes.length === 0 ||
    bytes.toString("base64url") !== value
  ) {
    const size = length === undefined ? "" : `exactly ${length} bytes `;
    throw error(`the ${name} of the JWK is not ${size}in base64url without padding`);
  }
  return bytes;
}
