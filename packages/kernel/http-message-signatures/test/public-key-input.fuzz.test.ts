import { expect, test } from "@jest/globals";
import { importVerificationKey, type PublicKeyInput } from "@countersign/http-message-signatures";
import * as fc from "fast-check";
import { publicKey } from "./hand-signer.ts";
import { fuzzRuns } from "@countersign/test-support/runs/fuzz-runs.ts";

const pem = publicKey.export({ format: "pem", type: "spki" }).toString();
const der = publicKey.export({ format: "der", type: "spki" });
const raw = der.subarray(12);
const jwk = publicKey.export({ format: "jwk" });
const texts = [
  pem,
  pem.replaceAll("\n", String.raw`\n`),
  der.toString("base64"),
  raw.toString("base64url"),
  raw.toString("hex"),
  JSON.stringify(jwk),
  JSON.stringify({ keys: [jwk] }),
];

/** Whether the key was taken. Anything thrown that is not the importer's own error fails the test. */
function isTaken(input: unknown): boolean {
  try {
    return importVerificationKey("k1", input as PublicKeyInput).publicKey.equals(publicKey);
  } catch (error) {
    expect(error).toBeInstanceOf(TypeError);
    expect(String(error)).toMatch(/^TypeError: importVerificationKey: /);
    return false;
  }
}

test("any text and any bytes are a key or our own error", () => {
  fc.assert(
    fc.property(
      fc.oneof(fc.string({ unit: "binary" }), fc.uint8Array({ maxLength: 128 }), fc.anything()),
      (input) => void isTaken(input),
    ),
  );
});

test("a text with a character exchanged, put in or taken out is a key or our own error", () => {
  const edit = fc.record({
    text: fc.constantFrom(...texts),
    place: fc.nat(200),
    gone: fc.nat(2),
    put: fc.string({ unit: "binary", maxLength: 2 }),
  });
  fc.assert(
    fc.property(edit, ({ text, place, gone, put }) => {
      const edited = text.slice(0, place) + put + text.slice(place + gone);
      expect(isTaken(Buffer.from(edited))).toBe(isTaken(edited));
    }),
    fuzzRuns(500),
  );
});

test("a bit of the key exchanged never gives the same key", () => {
  fc.assert(
    fc.property(fc.nat(255), fc.constantFrom("hex", "base64", "base64url"), (bit, encoding) => {
      const bytes = Buffer.from(raw);
      bytes[bit >> 3] = (bytes[bit >> 3] ?? 0) ^ (1 << (bit & 7));
      expect(isTaken(bytes)).toBe(false);
      expect(isTaken(bytes.toString(encoding))).toBe(false);
    }),
  );
});
