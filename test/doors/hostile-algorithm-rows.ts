// The six algorithms of RFC 9421 section 3.3, each with its key, and each taken for another.
import { constants, createHmac, sign, type KeyObject } from "node:crypto";
import { signatureAlgorithms, type SignatureAlgorithm } from "@countersign/http-message-signatures";
import type { HttpSignatureVerifyOptions } from "@countersign/http-signature-verify";
import {
  algorithmKeys,
  type AlgorithmKey,
} from "../../packages/kernel/http-message-signatures/test/algorithm-keys.ts";
import type { WireRequest } from "../support/servers/http-client.ts";
import { withHeader } from "../support/signers/independent-signer.ts";
import { accepted, policyScene, signOrder, unauthorized } from "./policy-scene.ts";
import type { Row } from "./row.ts";

type Signer = (base: Buffer, key: KeyObject) => Buffer;

const padding = constants.RSA_PKCS1_PSS_PADDING;
const signers: Readonly<Record<SignatureAlgorithm, Signer>> = {
  ed25519: (base, key) => sign(null, base, key),
  "ecdsa-p256-sha256": (base, key) => sign("sha256", base, { key, dsaEncoding: "ieee-p1363" }),
  "ecdsa-p384-sha384": (base, key) => sign("sha384", base, { key, dsaEncoding: "ieee-p1363" }),
  "rsa-pss-sha512": (base, key) => sign("sha512", base, { key, padding, saltLength: 64 }),
  "rsa-v1_5-sha256": (base, key) => sign("sha256", base, key),
  "hmac-sha256": (base, key) => createHmac("sha256", key).update(base).digest(),
};

/** An order that says `alg`, with the signature that `make` gives for its base. */
function orderOf(alg: string | undefined, make: (base: Buffer) => Buffer): WireRequest {
  const order = signOrder({ parameters: { alg: alg && `"${alg}"` } });
  const bytes = make(Buffer.from(order.signatureBase)).toString("base64");
  return { ...order, headers: withHeader(order.headers, "signature", () => `sig1=:${bytes}:`) };
}

const everything: Partial<HttpSignatureVerifyOptions> = { algorithms: signatureAlgorithms };
const withoutAlg: Partial<HttpSignatureVerifyOptions> = {
  requiredParameters: ["created", "expires", "keyid", "nonce"],
};

const changed = (bytes: Buffer): Buffer => {
  const other = Buffer.from(bytes);
  const last = other.length - 1;
  other.writeUInt8(other.readUInt8(last) ^ 1, last);
  return other;
};

type Case = readonly [
  title: string,
  code: string | undefined,
  request: () => WireRequest,
  options?: Partial<HttpSignatureVerifyOptions>,
];

function casesOf({ alg, signing, verifying }: AlgorithmKey): readonly Case[] {
  const right = (base: Buffer): Buffer => signers[alg](base, signing);
  const malformed = alg === "ed25519" ? "signature-malformed" : "signature-mismatch";
  const next = signatureAlgorithms[(signatureAlgorithms.indexOf(alg) + 1) % signatureAlgorithms.length];
  const publicBytes = (): Buffer =>
    verifying.type === "secret"
      ? Buffer.alloc(32)
      : Buffer.from(verifying.export({ type: "spki", format: "pem" }));
  const byPublicBytes = (base: Buffer): Buffer => createHmac("sha256", publicBytes()).update(base).digest();
  return [
    ["an order", undefined, () => orderOf(alg, right)],
    ["an order that leaves the algorithm to the key", undefined, () => orderOf(undefined, right), withoutAlg],
    ["one bit changed", "signature-mismatch", () => orderOf(alg, (base) => changed(right(base)))],
    ["a byte less", malformed, () => orderOf(alg, (base) => right(base).subarray(1))],
    ["a byte more", malformed, () => orderOf(alg, (base) => Buffer.concat([right(base), Buffer.alloc(1)]))],
    ["zeros", "signature-mismatch", () => orderOf(alg, (base) => Buffer.alloc(right(base).length))],
    [
      "the signature of another order",
      "signature-mismatch",
      () => orderOf(alg, () => right(Buffer.from("?"))),
    ],
    [
      "the name of another algorithm",
      next === "ed25519" ? "signature-malformed" : "alg-mismatch",
      () => orderOf(next, right),
      everything,
    ],
    ["its name in capitals", "alg-mismatch", () => orderOf(alg.toUpperCase(), right)],
    ["an HMAC by what is public", malformed, () => orderOf(alg, byPublicBytes)],
    ...(alg === "hmac-sha256"
      ? []
      : [
          [
            "an HMAC by what is public, said to be one",
            "alg-mismatch",
            () => orderOf("hmac-sha256", byPublicBytes),
            everything,
          ] as const,
        ]),
  ];
}

const keyOf = (alg: SignatureAlgorithm): AlgorithmKey =>
  algorithmKeys.find((key) => key.alg === alg) as AlgorithmKey;

/** What is near to an algorithm, and is another one. */
const near: readonly (readonly [SignatureAlgorithm, title: string, Signer])[] = [
  ["ecdsa-p256-sha256", "DER", (base, key) => sign("sha256", base, { key, dsaEncoding: "der" })],
  ["ecdsa-p256-sha256", "SHA-384", (base, key) => sign("sha384", base, { key, dsaEncoding: "ieee-p1363" })],
  ["ecdsa-p384-sha384", "DER", (base, key) => sign("sha384", base, { key, dsaEncoding: "der" })],
  ["ecdsa-p384-sha384", "SHA-256", (base, key) => sign("sha256", base, { key, dsaEncoding: "ieee-p1363" })],
  ["rsa-pss-sha512", "a salt of 32", (base, key) => sign("sha512", base, { key, padding, saltLength: 32 })],
  ["rsa-v1_5-sha256", "SHA-512", (base, key) => sign("sha512", base, key)],
  ["rsa-v1_5-sha256", "PSS", (base, key) => sign("sha512", base, { key, padding, saltLength: 64 })],
  [
    "hmac-sha256",
    "SHA-512, cut",
    (base, key) => createHmac("sha512", key).update(base).digest().subarray(32),
  ],
];

const nearCases = near.map(([alg, title, signer]): readonly [AlgorithmKey, Case] => {
  const key = keyOf(alg);
  return [
    key,
    [
      `a signature by ${title}`,
      "signature-mismatch",
      () => orderOf(alg, (base) => signer(base, key.signing)),
    ],
  ];
});

export const algorithmRows: readonly Row[] = [
  ...algorithmKeys.flatMap((key) => casesOf(key).map((each) => [key, each] as const)),
  ...nearCases,
].map(([{ alg, imported }, [title, code, request, options]]) => ({
  title: `${alg}: ${title}`,
  scene: policyScene({ keys: () => imported, algorithms: [alg], ...options }),
  request,
  answer: code === undefined ? accepted : unauthorized,
  ...(code !== undefined && { code }),
}));
