import { createSecretKey, type KeyObject } from "node:crypto";
import { describe, expect, test } from "@jest/globals";
import * as fc from "fast-check";
import { algorithms } from "../src/algorithms/registry.ts";
import { importVerificationKey, type SignatureAlgorithm } from "@countersign/http-message-signatures";
import { algorithmKeys } from "./algorithm-keys.ts";
import { fuzzRuns } from "@countersign/test-support/runs/share.ts";

function flipped(bytes: Uint8Array, bit: number): Buffer {
  const copy = Buffer.from(bytes);
  const index = (bit >> 3) % copy.length;
  copy[index] = (copy[index] ?? 0) ^ (1 << (bit & 7));
  return copy;
}

/** The key with one bit exchanged, if it is still one that is taken. */
function withFlippedBit(key: KeyObject, alg: SignatureAlgorithm, bit: number): KeyObject | undefined {
  const bytes = key.type === "secret" ? key.export() : key.export({ format: "der", type: "spki" });
  const changed = flipped(bytes, bit);
  return takenAs(alg, key.type === "secret" ? createSecretKey(changed) : changed);
}

describe.each(algorithmKeys.map((key) => [key.alg, key] as const))("%s", (alg, { signing, imported }) => {
  const { sign, verify, verifyAsync } = algorithms[alg];
  const verdict = (data: Uint8Array, signature: Uint8Array, key = imported.publicKey): boolean =>
    verify(key, data, signature, "native");

  test("verifies what it signs, and nothing with one bit flipped", async () => {
    expect(verdict(Buffer.alloc(0), sign(signing, Buffer.alloc(0)))).toBe(true);
    await fc.assert(
      fc.asyncProperty(fc.uint8Array({ minLength: 1, maxLength: 200 }), fc.nat(65_535), async (data, bit) => {
        const signature = sign(signing, data);
        expect(verdict(data, signature)).toBe(true);
        expect(await verifyAsync(imported.publicKey, data, signature)).toBe(true);
        expect(verdict(data, flipped(signature, bit))).toBe(false);
        expect(verdict(flipped(data, bit), signature)).toBe(false);
        const otherKey = withFlippedBit(imported.publicKey, alg, bit);
        expect(otherKey !== undefined && verdict(data, signature, otherKey)).toBe(false);
      }),
      fuzzRuns(60),
    );
  });

  test("has a verdict on any bytes, the same on this thread and on another", async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.uint8Array({ maxLength: 600 }),
        fc.uint8Array({ maxLength: 50 }),
        async (bytes, data) => {
          expect(verdict(data, bytes)).toBe(false);
          expect(await verifyAsync(imported.publicKey, data, bytes)).toBe(false);
        },
      ),
      fuzzRuns(60),
    );
  });
});

test("any 32 bytes and more are a secret, whatever they begin with", () => {
  const starts = ["{", " {", "30", "MI", "ssh", "----", "\0", "0\u0082"].map((text) =>
    Buffer.from(text, "latin1"),
  );
  fc.assert(
    fc.property(
      fc.constantFrom(...starts),
      fc.uint8Array({ minLength: 32, maxLength: 200 }),
      (start, bytes) => {
        const secret = Buffer.concat([start, bytes]);
        const key = importVerificationKey("k1", secret, { alg: "hmac-sha256" });
        expect(key.publicKey.equals(createSecretKey(secret))).toBe(true);
      },
    ),
    { ...fuzzRuns(1000), examples: [[Buffer.from("ssh"), Buffer.alloc(40, "-")]] },
  );
});

test("an edited SPKI or JWK is the one writing of a key, or our own error", () => {
  const keys = algorithmKeys.filter(({ alg }) => alg !== "hmac-sha256" && alg !== "ed25519");
  const edit = fc.record({
    key: fc.constantFrom(...keys),
    place: fc.nat(330),
    gone: fc.nat(2),
    put: fc.uint8Array({ maxLength: 2 }),
  });
  fc.assert(
    fc.property(edit, ({ key: { alg, verifying }, place, gone, put }) => {
      const der = verifying.export({ format: "der", type: "spki" });
      const edited = Buffer.concat([der.subarray(0, place), put, der.subarray(place + gone)]);
      const taken = takenAs(alg, edited);
      if (taken !== undefined) expect(taken.export({ format: "der", type: "spki" })).toEqual(edited);
      const json = JSON.stringify(verifying.export({ format: "jwk" }));
      const text = json.slice(0, place) + Buffer.from(put).toString("latin1") + json.slice(place + gone);
      takenAs(alg, text);
    }),
    fuzzRuns(2000),
  );
});

/** The key that was taken. Anything thrown that is not the importer's own error fails the test. */
function takenAs(alg: SignatureAlgorithm, input: string | Uint8Array | KeyObject): KeyObject | undefined {
  try {
    return importVerificationKey("k1", input, { alg }).publicKey;
  } catch (error) {
    expect(String(error)).toMatch(/^TypeError: importVerificationKey: /);
    return undefined;
  }
}
