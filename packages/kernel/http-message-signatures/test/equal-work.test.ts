import { createHook } from "node:async_hooks";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "@jest/globals";
import {
  importVerificationKey,
  readSignature,
  verifySignature,
  verifySignatureAsync,
  type VerificationKey,
} from "@countersign/http-message-signatures";
import { verifyEd25519, verifyEd25519Async } from "../src/algorithms/ed25519.ts";
import { L, p, signWith, smallOrderEncodings, torsion, withS } from "./forgery.ts";
import { key, profile, publicKey, signByHand } from "./hand-signer.ts";
import { withFields } from "./hostile-rows.ts";
import { ed25519 } from "@noble/curves/ed25519.js";
import { numberToBytesLE } from "@noble/curves/utils.js";

const { input, base, signature } = signByHand();
const message = Buffer.from(base);
const good = Buffer.from(signature.slice(6, -1), "base64");
const identity = Buffer.from(`01${"00".repeat(31)}`, "hex");

/** Every shape that a library, or this one, might refuse early, and one that it cannot. */
const shapes: readonly (readonly [title: string, bytes: Buffer])[] = [
  ["a signature of another request", Buffer.concat([good.subarray(0, 63), Buffer.from([0])])],
  ...smallOrderEncodings.map(
    ([name, hex]) => [`R: ${name}`, signWith(Buffer.from(hex, "hex"), 0n, message)] as const,
  ),
  ["R beyond the field", signWith(numberToBytesLE(p + 3n, 32), 0n, message)],
  ["R that is no point", Buffer.concat([numberToBytesLE(2n, 32), good.subarray(32)])],
  [
    "R with a torsion part",
    signWith((torsion[1] ?? ed25519.Point.BASE).add(ed25519.Point.BASE).toBytes(), 1n, message),
  ],
  ["S = L", withS(good, () => L)],
  ["S + L", withS(good, (s) => s + L)],
  ["S of ones", withS(good, () => (1n << 256n) - 1n)],
  ["zeros", Buffer.alloc(64)],
  ["ones", Buffer.alloc(64, 0xff)],
];

const retired = importVerificationKey("test-key", publicKey, { retired: true });
const keys: readonly (readonly [title: string, key: VerificationKey | null | undefined])[] = [
  ["a known keyid", key],
  ["an unknown keyid", undefined],
  ["an unknown keyid, said by null", null],
  ["a retired key", retired],
  ["a revoked key", importVerificationKey("test-key", publicKey, { revokedAt: 1 })],
  ["a key for other paths", importVerificationKey("test-key", publicKey, { scope: { paths: ["/other"] } })],
  ["the key of another keyid", importVerificationKey("other", publicKey)],
];

let verifications = 0;
const hook = createHook({
  init: (_id, type) => {
    if (type === "SIGNREQUEST") verifications += 1;
  },
});
beforeAll(() => void hook.enable());
afterAll(() => void hook.disable());
beforeEach(() => {
  verifications = 0;
});

describe.each(keys)("under %s one Ed25519 verification is spent", (title, candidate) => {
  test.each(shapes)("on %s", async (_shape, bytes) => {
    const received = readSignature(withFields(input, `sig1=:${bytes.toString("base64")}:`), profile);
    await expect(verifySignatureAsync(received, candidate)).rejects.toMatchObject({
      name: "MessageSignatureError",
      code: title === "a known keyid" ? "signature-mismatch" : expect.stringMatching(/^key-/),
    });
    expect(verifications).toBe(1);
    expect(() => verifySignature(received, candidate)).toThrow();
  });
});

test.each(shapes)("the key itself is put to use once on %s", async (_shape, bytes) => {
  let uses = 0;
  const watched: VerificationKey = {
    ...key,
    get publicKey() {
      uses += 1;
      return publicKey;
    },
  };
  expect(verifyEd25519(watched.publicKey, message, bytes)).toBe(false);
  expect(uses).toBe(1);
  expect(verifyEd25519(watched.publicKey, message, bytes, "noble")).toBe(false);
  expect(uses).toBe(2);
  expect(await verifyEd25519Async(watched.publicKey, message, bytes)).toBe(false);
  expect(uses).toBe(3);
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
    expect(verifyEd25519(rfc.publicKey, empty, Buffer.concat([identity, Buffer.alloc(32)]), engine)).toBe(
      false,
    );
    expect(verifyEd25519(rfc.publicKey, empty, Buffer.alloc(63), engine)).toBe(false);
  }
});
