import { describe, expect, test } from "@jest/globals";
import { hostileSignatures } from "@countersign/test-support/signers/hostile-signatures.ts";
import { signRequest } from "@countersign/test-support/signers/independent-signer.ts";
import { servicePublicPem } from "@countersign/test-support/signers/test-keys.ts";
import { explainSignature, type ExplainSignatureOptions } from "../dist/index.js";
import { mistaken, now, pemOf, ecPublic, verifier, type Mistake } from "./signed-with-mistake.ts";

const keys = { "test-key": servicePublicPem };

describe("explainSignature of what no verifier takes", () => {
  test.each(hostileSignatures((plan) => signRequest(plan)))("%s: %s", async (_title, code, make) => {
    const { method, path: target, headers, body: content } = make();
    const request = { method, target, rawHeaders: ["Host", "platform.example", ...headers], body: content };
    const explained = await explainSignature(request, { keys, maxAttempts: 100 });
    expect(explained.code).toBe(code);
    expect(explained.sentence).toMatch(/^[A-Z][ -~]+\.$/);
    expect(explained.sentence).not.toContain("Look up the refusal");
  });

  const jwk = { kty: "OKP", crv: "Ed25519", x: "JrQLj5P_89iXES9-vFgrIy29clF9CC_oPPsw3c5D0bs" };
  test.each<[string, string, Mistake, Partial<ExplainSignatureOptions>]>([
    ["a revoked key", "key-revoked", {}, { keys: { "test-key": { ...jwk, revoked: { revoked_at: now } } } }],
    ["a key that has ended", "key-retired", {}, { keys: { "test-key": { ...jwk, exp: now - 10 } } }],
    [
      "a component that is forbidden",
      "component-forbidden",
      {},
      { forbiddenComponents: ["content-type"], requiredComponents: ["@method"] },
    ],
    [
      "a parameter that is forbidden",
      "parameter-forbidden",
      {},
      { forbiddenParameters: ["nonce"], requiredParameters: ["created", "keyid"] },
    ],
    [
      "another tag",
      "tag-other",
      { plan: { parameters: { tag: '"other"' } } },
      { tag: { require: "payout" } },
    ],
    [
      "a key of another algorithm",
      "alg-not-taken",
      { plan: { parameters: { alg: '"ecdsa-p256-sha256"' } } },
      { keys: { "test-key": pemOf(ecPublic) } },
    ],
    ["two servers", "authority-conflict", { headers: ["Host", "other.example"] }, {}],
    ["no method", "method-invalid", { received: { method: "P OST" } }, {}],
    [
      "a body that is not covered",
      "body-not-covered",
      {
        plan: {
          covered: [
            ['"@method"', "POST"],
            ['"@path"', "/api/v1/transaction"],
          ],
        },
      },
      { requiredComponents: ["@method", "@path"] },
    ],
    ["@status of a request", "component-of-response", { plan: { covered: [['"@status"', "200"]] } }, {}],
    ["a name of a field with a blank", "component-name", { plan: { covered: [['"a b"', "x"]] } }, {}],
    [
      "a nonce of another name",
      "nonce-missing",
      { plan: { parameters: { nonce: undefined, jti: '"a"' } } },
      {},
    ],
    [
      "created of another name",
      "created-other-name",
      { plan: { parameters: { created: undefined, iat: String(now) } } },
      {},
    ],
  ])("%s: %s", async (_title, what, mistake, options) => {
    const explained = await explainSignature(mistaken(mistake), { ...verifier, ...options });
    expect(explained.what).toBe(what);
  });
});
