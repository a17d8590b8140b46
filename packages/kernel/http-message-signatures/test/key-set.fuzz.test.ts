import { expect, test } from "@jest/globals";
import { importKeys, type ImportedKeys } from "@countersign/http-message-signatures";
import { isVerificationKey } from "@countersign/http-message-signatures/internal";
import * as fc from "fast-check";
import { publicKey } from "./hand-signer.ts";
import { fuzzRuns } from "@countersign/test-support/runs/share.ts";

const jwk = publicKey.export({ format: "jwk" });
const pem = publicKey.export({ format: "pem", type: "spki" }).toString();

/** Anything thrown that is not the importer's own error fails the test. */
function read(document: unknown): ImportedKeys | undefined {
  try {
    return importKeys(document, { keyid: "file" });
  } catch (error) {
    expect(String(error)).toMatch(/^TypeError: importVerificationKey: /);
    return undefined;
  }
}

function assertSound({ keys, faults }: ImportedKeys): void {
  for (const [keyid, key] of keys) expect([key.keyid, isVerificationKey(key)]).toEqual([keyid, true]);
  for (const { error } of faults) expect(error.message).toMatch(/^importVerificationKey: /);
}

test("any value and any text is keys, faults, or our own error", () => {
  const values = fc.oneof(fc.anything(), fc.string(), fc.json(), fc.uint8Array({ maxLength: 100 }));
  fc.assert(
    fc.property(values, (document) => {
      const imported = read(document);
      if (imported !== undefined) assertSound(imported);
    }),
    fuzzRuns(5000),
  );
});

test("whatever stands beside it, a good key of a set is taken, unless its keyid means another key too", () => {
  const kid = fc.constantFrom("good", "__proto__", "constructor", "", "a\u0000", 7, null, undefined);
  const member = fc.record(
    {
      kty: fc.constantFrom<unknown>("OKP", "RSA", "oct", 1),
      crv: fc.constantFrom<unknown>("Ed25519", "X25519", null),
      x: fc.oneof(fc.constant(jwk.x), fc.string()),
      kid,
      nbf: fc.oneof(fc.nat(), fc.string()),
      exp: fc.oneof(fc.nat(), fc.string()),
      d: fc.string(),
      use: fc.constantFrom("sig", "enc"),
    },
    { requiredKeys: [] },
  );
  const others = fc.array(fc.oneof(member, fc.anything(), fc.constant(pem)), { maxLength: 8 });
  fc.assert(
    fc.property(others, fc.nat(8), (list, place) => {
      const keys = [...list.slice(0, place), { ...jwk, kid: "good" }, ...list.slice(place)];
      const imported = importKeys({ keys });
      assertSound(imported);
      const named = list.filter((one) => (one as { kid?: unknown } | null | undefined)?.kid === "good");
      const isTwice = named.some((one) => importKeys({ keys: [one] }).keys.size > 0);
      if (isTwice || named.length === 0) expect(imported.keys.has("good")).toBe(!isTwice);
      expect(imported.keys.size + imported.faults.length).toBeLessThanOrEqual(keys.length);
    }),
    fuzzRuns(3000),
  );
});
