import { createHook } from "node:async_hooks";
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { ed25519 } from "@noble/curves/ed25519.js";
import { numberToBytesLE } from "@noble/curves/utils.js";
import {
  importVerificationKey,
  verifySignature,
  verifySignatureAsync,
  type ReceivedSignature,
  type SignatureAlgorithm,
  type VerificationKey,
} from "@countersign/http-message-signatures";
import { verifyEd25519, verifyEd25519Async } from "../src/algorithms/ed25519.ts";
import { algorithms } from "../src/algorithms/registry.ts";
import { buildSignatureBase } from "../src/signature-base.ts";
import { algorithmKeys, keyOf } from "./algorithm-keys.ts";
import { L, p, signWith, smallOrderEncodings, torsion, withS } from "./forgery.ts";
import { key as ed25519Key } from "./hand-signer.ts";
import { receivedBy } from "./received-by.ts";

type Shape = readonly [title: string, bytes: Buffer];

let verifications = 0;
const hook = createHook({
  init: (_id, type) => {
    if (type === "SIGNREQUEST") verifications += 1;
  },
});
beforeAll(() => void hook.enable());
afterAll(() => void hook.disable());

/** Every shape that a library, or this one, might refuse early, and one that it cannot. */
function shapesOf(alg: SignatureAlgorithm): readonly Shape[] {
  const good = Buffer.from(algorithms[alg].sign(keyOf(alg).signing, Buffer.from("another request")));
  const half = good.length / 2;
  return [
    ["a signature of another request", good],
    ["no bytes", Buffer.alloc(0)],
    ["a byte less", good.subarray(1)],
    ["a byte more", Buffer.concat([good, Buffer.alloc(1)])],
    ["zeros", Buffer.alloc(good.length)],
    ["ones", Buffer.alloc(good.length, 0xff)],
    ["a half of zeros", Buffer.concat([Buffer.alloc(half), good.subarray(half)])],
    ["another half of zeros", Buffer.concat([good.subarray(0, half), Buffer.alloc(half)])],
  ];
}

const received = receivedBy("ed25519");
const message = Buffer.from(buildSignatureBase(received.values, received.input));
const good = Buffer.from(received.signature);
const shapesOfEd25519: readonly Shape[] = [
  ...smallOrderEncodings.map(([name, hex]): Shape => [
    `R: ${name}`,
    signWith(Buffer.from(hex, "hex"), 0n, message),
  ]),
  ["R beyond the field", signWith(numberToBytesLE(p + 3n, 32), 0n, message)],
  ["R that is no point", Buffer.concat([numberToBytesLE(2n, 32), good.subarray(32)])],
  [
    "R with a torsion part",
    signWith((torsion[1] ?? ed25519.Point.BASE).add(ed25519.Point.BASE).toBytes(), 1n, message),
  ],
  ["S = L", withS(good, () => L)],
  ["S + L", withS(good, (s) => s + L)],
  ["S of ones", withS(good, () => (1n << 256n) - 1n)],
];

const handedOver = algorithmKeys.filter(({ alg }) => alg !== "hmac-sha256");

describe.each(handedOver.map((key) => [key.alg, key] as const))("by %s", (alg, { imported, verifying }) => {
  const others = algorithmKeys.filter((other) => other.alg !== alg);
  const keys: readonly (readonly [title: string, key: VerificationKey | null | undefined])[] = [
    ["a known keyid", imported],
    ["an unknown keyid", undefined],
    ["an unknown keyid, said by null", null],
    ["a retired key", importVerificationKey("test-key", verifying, { alg, retired: true })],
    ["a revoked key", importVerificationKey("test-key", verifying, { alg, revokedAt: 1 })],
    [
      "a key for other paths",
      importVerificationKey("test-key", verifying, { alg, scope: { paths: ["/x"] } }),
    ],
    ["the key of another keyid", importVerificationKey("other", verifying, { alg })],
    ...others.map((other) => [`a key of ${other.alg}`, other.imported] as const),
  ];
  const shapes = [...shapesOf(alg), ...(alg === "ed25519" ? shapesOfEd25519 : [])];

  describe.each(keys)("under %s one verification is spent", (title, key) => {
    test.each(shapes)("on %s", async (_shape, signature) => {
      const shaped: ReceivedSignature = { ...receivedBy(alg), signature };
      // Signing is counted too.
      verifications = 0;
      await expect(verifySignatureAsync(shaped, key)).rejects.toMatchObject({
        name: "MessageSignatureError",
        code: title === "a known keyid" ? "signature-mismatch" : expect.stringMatching(/^(?:key|alg)-/),
      });
      expect(verifications).toBe(1);
      expect(() => verifySignature(shaped, key)).toThrow();
    });
  });
});

// An HMAC is computed on this thread, at once: whatever is handed over is the work of another algorithm.
test.each([
  ["an unknown keyid", undefined],
  ...algorithmKeys.map(({ alg, imported }) => [`a key of ${alg}`, imported] as const),
] as const)("under %s nothing else is spent on a signature that names hmac-sha256", async (_title, key) => {
  const ofHmac: ReceivedSignature = { ...receivedBy("hmac-sha256"), signature: Buffer.alloc(32) };
  verifications = 0;
  await expect(verifySignatureAsync(ofHmac, key)).rejects.toThrow();
  expect(verifications).toBe(0);
});

test.each(shapesOfEd25519)("no engine takes %s", async (_shape, bytes) => {
  const { publicKey } = ed25519Key;
  expect(verifyEd25519(publicKey, message, bytes)).toBe(false);
  expect(verifyEd25519(publicKey, message, bytes, "noble")).toBe(false);
  expect(await verifyEd25519Async(publicKey, message, bytes)).toBe(false);
});

test("what is verified in place of a malformed signature never makes it pass", () => {
  // The key of RFC 8032 section 7.1, test 1, under which the placeholder is right for the empty message.
  const rfc = importVerificationKey(
    "rfc",
    Buffer.from("d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a", "hex").toString("base64"),
  );
  const empty = Buffer.alloc(0);
  const right =
    "e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e06522490155" +
    "5fb8821590a33bacc61e39701cf9b46bd25bf5f0595bbe24655141438e7a100b";
  for (const engine of ["native", "noble"] as const) {
    expect(verifyEd25519(rfc.publicKey, empty, Buffer.from(right, "hex"), engine)).toBe(true);
    expect(verifyEd25519(rfc.publicKey, empty, Buffer.concat([Buffer.of(1), Buffer.alloc(63)]), engine)).toBe(
      false,
    );
    expect(verifyEd25519(rfc.publicKey, empty, Buffer.alloc(63), engine)).toBe(false);
  }
});
