import { createHook } from "node:async_hooks";
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import {
  importVerificationKey,
  verifySignatureAsync,
  type ReceivedSignature,
  type SignatureAlgorithm,
} from "@countersign/http-message-signatures";
import { algorithms } from "../src/algorithms/registry.ts";
import { algorithmKeys, keyOf } from "./algorithm-keys.ts";
import { receivedBy } from "./received-by.ts";

let verifications = 0;
const hook = createHook({
  init: (_id, type) => {
    if (type === "SIGNREQUEST") verifications += 1;
  },
});
beforeAll(() => void hook.enable());
afterAll(() => void hook.disable());

const handedOver = algorithmKeys.filter(({ alg }) => alg !== "hmac-sha256");

/** Every shape that a library, or this one, might refuse early, and one that it cannot. */
function shapesOf(alg: SignatureAlgorithm): readonly (readonly [title: string, bytes: Buffer])[] {
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

describe.each(handedOver.map((key) => [key.alg, key] as const))("by %s", (alg, { imported, verifying }) => {
  const others = algorithmKeys.filter((other) => other.alg !== alg).map(({ imported: other }) => other);
  const keys = [
    ["a known keyid", imported],
    ["an unknown keyid", undefined],
    ["a retired key", importVerificationKey("test-key", verifying, { alg, retired: true })],
    ...others.map((other) => [`a key of ${other.alg}`, other] as const),
  ] as const;

  describe.each(keys)("under %s one verification is spent", (title, key) => {
    test.each(shapesOf(alg))("on %s", async (_shape, signature) => {
      const received: ReceivedSignature = { ...receivedBy(alg), signature };
      // Signing is counted too.
      verifications = 0;
      await expect(verifySignatureAsync(received, key)).rejects.toMatchObject({
        name: "MessageSignatureError",
        code: title === "a known keyid" ? "signature-mismatch" : expect.stringMatching(/^(?:key|alg)-/),
      });
      expect(verifications).toBe(1);
    });
  });
});

// An HMAC is computed on this thread, at once: whatever is handed over is the work of another algorithm.
test.each([
  ["an unknown keyid", undefined],
  ...algorithmKeys.map(({ alg, imported }) => [`a key of ${alg}`, imported] as const),
] as const)("under %s nothing else is spent on a signature that names hmac-sha256", async (_title, key) => {
  const received: ReceivedSignature = { ...receivedBy("hmac-sha256"), signature: Buffer.alloc(32) };
  verifications = 0;
  await expect(verifySignatureAsync(received, key)).rejects.toThrow();
  expect(verifications).toBe(0);
});
