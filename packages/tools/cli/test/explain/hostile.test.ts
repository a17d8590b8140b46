import { describe, expect, test } from "@jest/globals";
import { hostileSignatures } from "@countersign/test-support/signers/hostile-signatures.ts";
import { signRequest } from "@countersign/test-support/signers/independent-signer.ts";
import { servicePublicPem } from "@countersign/test-support/signers/test-keys.ts";
import { explainSignature, type ExplainSignatureOptions } from "../../dist/explain/index.js";
import { covering, mistakes, sending } from "./mistakes.ts";
import {
  ecPublic,
  explainedAs,
  mistaken,
  now,
  pemOf,
  verifier,
  type Mistake,
} from "./signed-with-mistake.ts";

const keys = { "test-key": servicePublicPem };

const rows = explainedAs("mistakes.txt");

describe("explainSignature of the mistakes of signers", () => {
  test.each(rows)("$mistake", async ({ mistake, what, says }) => {
    const made = mistakes[mistake];
    const explained = await explainSignature(mistaken(made), { ...verifier, ...made?.options });
    expect(explained).toMatchObject({ what, sentence: says });
    expect(explained.attempts).toBeLessThanOrEqual(2000);
  });

  test("names all but three", () => {
    expect(rows.map(({ mistake }) => mistake)).toEqual(Object.keys(mistakes));
    expect(rows.filter(({ what }) => what === "signature-unexplained").map(({ mistake }) => mistake)).toEqual(
      ["a private key that nobody knows", "a base in words of its own", "three things at once"],
    );
    expect(rows.length).toBe(128);
  });
});

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
  const least = ["@method", "@path"];
  const noType = { forbiddenComponents: ["content-type"], requiredComponents: ["@method"] };
  const noNonce = { forbiddenParameters: ["nonce"], requiredParameters: ["created", "keyid"] } as const;
  const ofEc = { keys: { "test-key": pemOf(ecPublic) } };

  test.each<[string, string, Mistake, Partial<ExplainSignatureOptions>]>([
    ["a revoked key", "key-revoked", {}, { keys: { "test-key": { ...jwk, revoked: { revoked_at: now } } } }],
    ["a key that has ended", "key-retired", {}, { keys: { "test-key": { ...jwk, exp: now - 10 } } }],
    ["a component that is forbidden", "component-forbidden", {}, noType],
    ["a parameter that is forbidden", "parameter-forbidden", {}, noNonce],
    ["another tag", "tag-other", sending({ tag: '"other"' }), { tag: { require: "payout" } }],
    ["a key of another algorithm", "alg-not-taken", sending({ alg: '"ecdsa-p256-sha256"' }), ofEc],
    ["two servers", "authority-conflict", { headers: ["Host", "other.example"] }, {}],
    ["no signature", "signature-absent", { received: { rawHeaders: ["Host", "platform.example"] } }, {}],
    ["no method", "method-invalid", { received: { method: "P OST" } }, {}],
    [
      "a body that is not covered",
      "body-not-covered",
      { plan: covering(...least) },
      { requiredComponents: least },
    ],
    ["@status of a request", "component-of-response", { plan: covering("@status") }, {}],
    ["a name of a field with a blank", "component-name", { plan: covering("a b") }, {}],
    ["a nonce of another name", "nonce-missing", sending({ nonce: undefined, jti: '"a"' }), {}],
    ["created of another name", "created-other-name", sending({ created: undefined, iat: String(now) }), {}],
  ])("%s: %s", async (_title, what, mistake, options) => {
    const explained = await explainSignature(mistaken(mistake), { ...verifier, ...options });
    expect(explained.what).toBe(what);
  });
});
