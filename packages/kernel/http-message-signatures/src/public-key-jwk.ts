import { createPublicKey, type KeyObject } from "node:crypto";
import type { SignatureAlgorithm } from "./algorithms/algorithm.ts";
import { isRecord, keyError, privateKeyError } from "./verification-key.ts";

export type UnknownMembers = Readonly<Record<string, unknown>>;

/** A public key that Node has imported, not yet vetted. */
export interface ReadKey {
  readonly key: KeyObject;
  /** The algorithms that it may be for; RSA has more than one. */
  readonly algorithms: readonly SignatureAlgorithm[];
  /** The JWKs whose `nbf`, `exp` and `revoked` limit the key; none for a key of another form. */
  readonly jwks?: readonly UnknownMembers[] | undefined;
}

export interface Wanted {
  readonly keyid: string;
  readonly alg?: SignatureAlgorithm | undefined;
}

// By the curve, or else the type, that Node names.
const kinds = new Map<string | undefined, readonly SignatureAlgorithm[]>([
  ["ed25519", ["ed25519"]],
  ["prime256v1", ["ecdsa-p256-sha256"]],
  ["secp384r1", ["ecdsa-p384-sha384"]],
  ["rsa", ["rsa-pss-sha512", "rsa-v1_5-sha256"]],
  ["rsa-pss", ["rsa-pss-sha512"]],
]);

/** Finds the algorithms of a public key. Throws a TypeError for a key of another kind; `got` names its form. */
export function ofKind(key: KeyObject, got: string): ReadKey {
  const { asymmetricKeyType: type, asymmetricKeyDetails } = key;
  const kind = type === "ec" ? (asymmetricKeyDetails?.namedCurve ?? "of its own parameters") : type;
  const algorithms = kinds.get(kind);
  if (algorithms !== undefined) return { key, algorithms };
  const what = type === "ec" ? `a key on the curve ${kind}` : `a key of type ${kind}`;
  throw keyError(`${got} is ${what}; expected an Ed25519, P-256, P-384 or RSA key`);
}

// RFC 7518 section 3.1, RFC 8037 section 3.1 and RFC 9864 section 2.2.
const jwkAlgorithms: ReadonlyMap<unknown, SignatureAlgorithm> = new Map([
  ["EdDSA", "ed25519"],
  ["Ed25519", "ed25519"],
  ["ES256", "ecdsa-p256-sha256"],
  ["ES384", "ecdsa-p384-sha384"],
  ["PS512", "rsa-pss-sha512"],
  ["RS256", "rsa-v1_5-sha256"],
]);
// RFC 7518 sections 6.2.2, 6.3.2 and 6.4.1.
const privateMembers = ["d", "p", "q", "dp", "dq", "qi", "oth"];

function isPrivate(jwk: UnknownMembers): boolean {
  return privateMembers.some((name) => jwk[name] !== undefined);
}

/** Reads a JWK (RFC 7517 section 4). Every member that is there must agree. */
export function readJwk(jwk: UnknownMembers, keyid: string): ReadKey {
  if (isPrivate(jwk)) throw privateKeyError("the JWK");
  const { key, algorithms } = readMembers(jwk);
  if (jwk["use"] !== undefined && jwk["use"] !== "sig") throw keyError("the JWK has another use than sig");
  const { key_ops: keyOps } = jwk;
  if (keyOps !== undefined && !(Array.isArray(keyOps) && keyOps.length === 1 && keyOps[0] === "verify")) {
    throw keyError('the JWK has other key_ops than ["verify"]');
  }
  if (jwk["kid"] !== undefined && jwk["kid"] !== keyid) {
    throw keyError("the JWK has another kid than the keyid it is listed under");
  }
  return { key, algorithms: narrowByAlg(jwk, algorithms, keyError), jwks: [jwk] };
}

/** Narrows algorithms to the alg of a JWK. Throws a TypeError, made by `error`, when none is left. */
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

/** The one algorithm of a key. Throws a TypeError, made by `error`, when it is not `alg`, or more than one is left. */
export function chooseAlgorithm(
  fitting: readonly SignatureAlgorithm[],
  alg: SignatureAlgorithm | undefined,
  error: (what: string) => TypeError,
): SignatureAlgorithm {
  const [only] = fitting;
  if (alg !== undefined) {
    if (fitting.includes(alg)) return alg;
    throw error(`the key is one of ${fitting.join(" or ")}, not of ${alg}`);
  }
  if (only !== undefined && fitting.length === 1) return only;
  const named = fitting.map((each) => `"${each}"`).join(" or ");
  throw error(`the key does not say its algorithm; write alg: ${named}`);
}

// RFC 7638 section 3.2 and RFC 8037 section 2: what represents a key.
const keyMembers: readonly (readonly [kty: string, crv: string | undefined, names: readonly string[]])[] = [
  ["OKP", "Ed25519", ["x"]],
  ["EC", "P-256", ["x", "y"]],
  ["EC", "P-384", ["x", "y"]],
  ["RSA", undefined, ["n", "e"]],
];
// A modulus of 8,192 bits has 1,366 of them.
const mostCharacters = 16_384;

/** Imports the members that represent a key. Each is written exactly as Node writes it again (RFC 7518 sections 2 and 6.2.1). */
export function readMembers(jwk: UnknownMembers): ReadKey {
  const { kty, crv, k } = jwk;
  if (kty === "oct" || k !== undefined) {
    throw keyError(
      'the JWK is a secret; write alg: "hmac-sha256" and give its bytes if both sides share it, or give a public key',
    );
  }
  const names = keyMembers.find((each) => each[0] === kty && (each[1] === crv || each[1] === undefined))?.[2];
  if (names === undefined) {
    throw keyError("the JWK must have kty OKP and crv Ed25519, kty EC and crv P-256 or P-384, or kty RSA");
  }
  const absent = names.find((name) => typeof jwk[name] !== "string");
  if (absent !== undefined) throw keyError(`the JWK has no ${absent}`);
  const members = Object.fromEntries(["kty", "crv", ...names].map((name) => [name, jwk[name]]));
  const isLong = names.some((name) => String(jwk[name]).length > mostCharacters);
  const key = isLong ? undefined : attempt(() => createPublicKey({ key: members, format: "jwk" }));
  const written = attempt(() => key?.export({ format: "jwk" }));
  const other = names.find((name) => written?.[name] !== jwk[name]);
  if (key !== undefined && other === undefined) return ofKind(key, "the JWK");
  throw keyError(
    `the ${other ?? "key"} of the JWK is damaged, of another length, not on its curve, or not in base64url without padding`,
  );
}

/** Returns undefined where Node refuses: its errors may quote the key. */
export function attempt<Value>(work: () => Value): Value | undefined {
  try {
    return work();
  } catch {
    return undefined;
  }
}

/**
 * True if a JWK of a set is for another purpose than verifying signatures (RFC 7517 sections 4.2 and 4.3), or of a kind that no algorithm
 * of ours has. Section 5 lets a reader ignore such a key. False for private and secret keys, which no published set may hold.
 */
export function isForOthers(jwk: UnknownMembers): boolean {
  const { use, key_ops: keyOps, kty, crv, alg } = jwk;
  if (isPrivate(jwk) || kty === "oct" || jwk["k"] !== undefined) return false;
  if (typeof use === "string" && use !== "sig") return true;
  if (use === undefined && Array.isArray(keyOps) && !keyOps.includes("verify")) return true;
  if (typeof alg === "string" && !jwkAlgorithms.has(alg)) return true;
  const ofType = keyMembers.filter((each) => each[0] === kty);
  if (ofType.length === 0) return typeof kty === "string";
  return typeof crv === "string" && ofType.every((each) => each[1] !== undefined && each[1] !== crv);
}

/**
 * Reads the one key of a JWK Set (RFC 7517 section 5) that fits the keyid and `alg`; otherwise nothing is guessed. Keys with another kid
 * and keys for others are ignored. A key without a kid fits only where none has the keyid as its kid.
 */
export function readJwkSet(keys: readonly unknown[], { keyid, alg }: Wanted): ReadKey {
  const ours = keys.filter((jwk): jwk is UnknownMembers => isRecord(jwk) && !isForOthers(jwk));
  const named = ours.filter((jwk) => jwk["kid"] === keyid);
  const candidates = named.length > 0 ? named : ours.filter((jwk) => jwk["kid"] === undefined);
  if (candidates.some(isPrivate)) throw privateKeyError("a key of the JWK Set");
  const usable = candidates.flatMap((jwk) => {
    const key = attempt(() => readJwk(jwk, keyid));
    return key !== undefined && attempt(() => chooseAlgorithm(key.algorithms, alg, keyError)) !== undefined
      ? [key]
      : [];
  });
  const [only] = usable;
  if (only !== undefined && usable.length === 1) {
    // A second JWK of the keyid may be damaged, and still say that the key is revoked.
    return named.length > 0 ? { ...only, jwks: named } : only;
  }
  throw keyError(
    `the JWK Set has ${usable.length} of ${keys.length} keys that fit (an algorithm of RFC 9421, for verifying, the keyid as kid, or no kid ` +
      "where none has the keyid); expected exactly one: give that JWK itself, or alg",
  );
}
