import {
  createPrivateKey,
  createPublicKey,
  createSecretKey,
  type JsonWebKey,
  type KeyObject,
} from "node:crypto";
import { readFileSync } from "node:fs";
import {
  importVerificationKey,
  type SignatureAlgorithm,
  type VerificationKey,
} from "@countersign/http-message-signatures";

interface SignatureExample {
  readonly id: string;
  readonly alg: SignatureAlgorithm;
  readonly signatureBase: string;
  readonly signature: string;
}

/** The keys and signatures of RFC 9421 appendix B. Never use the keys outside tests. */
export const rfc9421 = JSON.parse(
  readFileSync(new URL("fixtures/rfc9421-keys.json", import.meta.url), "utf8"),
) as Readonly<Record<"rsa" | "rsaPss" | "p256" | "ed25519" | "secret", JsonWebKey>> & {
  readonly signatures: readonly SignatureExample[];
};

// Of nobody but these tests.
const p384: JsonWebKey = {
  kty: "EC",
  x: "Muz0v0m0GuT_EKjhCaHWJLCm4AA1eYnprebZWLZk-ovBJT6P5iIDIlFqGizGoNWD",
  y: "MlsJ-OQC_hFJDu31sR7RP9BDM-NO-ABbLCsUbL44bcbLFZBWceEoOv3Y2mmtAdt8",
  crv: "P-384",
  d: "l5C2VFVr0A0gyDA_QPNUuBVtGJTqWE8-y49eZurImiAy-FGmKvskXkymN3ebfx5q",
};

/** A key of each algorithm: what signs, what verifies, and the latter as it was imported. */
export interface AlgorithmKey {
  readonly alg: SignatureAlgorithm;
  readonly jwk: JsonWebKey;
  readonly signing: KeyObject;
  readonly verifying: KeyObject;
  readonly imported: VerificationKey;
}

function ofPair(alg: SignatureAlgorithm, jwk: JsonWebKey): AlgorithmKey {
  const signing = createPrivateKey({ key: jwk, format: "jwk" });
  const verifying = createPublicKey(signing);
  return { alg, jwk, signing, verifying, imported: importVerificationKey("test-key", verifying, { alg }) };
}

function ofSecret(jwk: JsonWebKey): AlgorithmKey {
  const alg = "hmac-sha256";
  const secret = createSecretKey(jwk.k ?? "", "base64url");
  return {
    alg,
    jwk,
    signing: secret,
    verifying: secret,
    imported: importVerificationKey("test-key", secret, { alg }),
  };
}

export const algorithmKeys: readonly AlgorithmKey[] = [
  ofPair("ed25519", rfc9421.ed25519),
  ofPair("ecdsa-p256-sha256", rfc9421.p256),
  ofPair("ecdsa-p384-sha384", p384),
  ofPair("rsa-pss-sha512", rfc9421.rsaPss),
  ofPair("rsa-v1_5-sha256", rfc9421.rsa),
  ofSecret(rfc9421.secret),
];

export function keyOf(alg: SignatureAlgorithm): AlgorithmKey {
  const key = algorithmKeys.find((each) => each.alg === alg);
  if (key === undefined) throw new Error(`no key of ${alg}`);
  return key;
}
