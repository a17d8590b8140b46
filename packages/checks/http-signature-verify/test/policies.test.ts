import { afterEach, beforeEach, describe, expect, test } from "@jest/globals";
import {
  httpSignatureVerify,
  memoryNonceStore,
  type HttpSignatureVerifyOptions,
} from "@countersign/http-signature-verify";
import type { NonceClaim } from "@countersign/core";
import express from "express";
import {
  samplePath,
  sha256Field,
  signRequest,
  type SigningPlan,
} from "@countersign/test-support/signers/independent-signer.ts";
import { servicePublicPem } from "@countersign/test-support/signers/test-keys.ts";
import { defaults, startPlatform, type Platform } from "./platform.ts";
import { allowWarnings } from "@countersign/test-support/runs/expect-warning.ts";

let platform: Platform;
// What a policy covers is in coverage-warning.test.ts.
beforeEach(() => allowWarnings(/^\[signature-covers-little\]/));
afterEach(() => platform?.close());

const body = '{"a":1}';
const digest = sha256Field(Buffer.from(body));
const four = [
  ['"@method"', "POST"],
  ['"@path"', samplePath],
  ['"content-type"', "application/json"],
  ['"content-digest"', digest],
] as const;
const created = 1_700_000_000;

async function codeOf(
  options: Partial<HttpSignatureVerifyOptions>,
  plan: SigningPlan & { readonly extra?: readonly string[] },
): Promise<string | undefined> {
  platform = await startPlatform(express, options);
  const signed = signRequest({ body, ...plan });
  const answer = await platform.send({ ...signed, headers: [...signed.headers, ...(plan.extra ?? [])] });
  expect(answer.status).toBe(platform.codes.length === 0 ? 200 : 401);
  return platform.codes[0];
}

describe("a policy of httpSignatureVerify", () => {
  const lax = { requiredParameters: ["keyid", "created"], nonces: undefined } as const;
  const bare = { expires: undefined, alg: undefined, nonce: undefined };

  test.each<[string, Partial<HttpSignatureVerifyOptions>, SigningPlan & { extra?: string[] }]>([
    ["parameters that are not required, absent", lax, { parameters: bare }],
    ["parameters that are not required, present", lax, {}],
    ["a query parameter", idRequired(), withId('"@query-param";name="id"', "%C3%A4+b", "%C3%A4%20b")],
    [
      "a member of a dictionary",
      { requiredComponents: ['"priority";key="u"', "content-digest"] },
      { covered: [...four, ['"priority";key="u"', "1"]], extra: ["Priority", "u=1,  i"] },
    ],
    [
      "a field of an added type",
      { fieldTypes: { "x-list": "list" }, requiredComponents: ['"x-list";sf'] },
      { covered: [...four, ['"x-list";sf', "1, 2"]], extra: ["X-List", "1,2"] },
    ],
    [
      "the digest by its serialisation",
      { requiredComponents: ['"content-digest";sf'] },
      { covered: [...four.slice(0, 3), ['"content-digest";sf', digest]] },
    ],
    ["a label", { label: "sig1" }, {}],
    [
      "a body that nothing signs",
      { requiredComponents: ["@path"], allowUnsignedBody: true },
      { covered: four.slice(0, 3) },
    ],
  ])("takes %s", async (_title, options, plan) => {
    expect(await codeOf(options, plan)).toBeUndefined();
  });

  test.each<[string, string, Partial<HttpSignatureVerifyOptions>, SigningPlan & { extra?: string[] }]>([
    ["a malformed one that is not required", "nonce-invalid", lax, { parameters: { ...bare, nonce: "n" } }],
    [
      "another alg although none is required",
      "alg-mismatch",
      lax,
      { parameters: { ...bare, alg: '"none"' } },
    ],
    [
      "another query parameter",
      "component-required",
      idRequired(),
      withId('"@query-param";name="id2"', "1", "1"),
    ],
    [
      "a body whose digest is covered by one member alone",
      "body-not-covered",
      { requiredComponents: ["@path"] },
      { covered: [...four.slice(0, 3), ['"content-digest";key="sha-256"', digest.slice("sha-256=".length)]] },
    ],
  ])("refuses %s: %s", async (_title, code, options, plan) => {
    expect(await codeOf(options, plan)).toBe(code);
  });

  test("claims a nonce that is there although none is required, until the signature's end", async () => {
    const claims: NonceClaim[] = [];
    const nonces = { claim: (claim: NonceClaim) => (claims.push(claim), "fresh" as const) };
    platform = await startPlatform(express, { ...lax, nonces, clock: () => created * 1000 });
    await platform.send(signRequest({ created, parameters: { ...bare, nonce: '"n-1"' } }));
    await platform.send(signRequest({ created, parameters: bare }));
    expect(claims).toEqual([
      { scope: "test-key", nonce: "n-1", token: expect.any(String), retainMs: 150_000 },
    ]);
    expect(platform.reached.map((req) => req.signature?.nonce)).toEqual(["n-1", undefined]);
    expect(platform.reached.map((req) => req.signature?.alg)).toEqual(["ed25519", "ed25519"]);
  });
});

test.each<[string, object]>([
  ["nonces", { nonces: undefined }],
  ["nonces", { nonces: undefined, requiredParameters: ["keyid", "created", "nonce"] }],
  ["nonces", { nonces: {}, requiredParameters: ["keyid", "created"] }],
  ["requiredParameters", { requiredParameters: [] }],
  ["requiredParameters", { requiredParameters: ["created"] }],
  ["requiredParameters", { requiredParameters: ["keyid", "nonce"] }],
  ["requiredParameters", { requiredParameters: ["keyid", "created", "created"] }],
  ["requiredParameters", { requiredParameters: ["keyid", "created", "x"] }],
  ["requiredParameters", { requiredParameters: "keyid" }],
  ["forbiddenParameters", { forbiddenParameters: [] }],
  ["forbiddenParameters", { forbiddenParameters: ["keyid"] }],
  ["forbiddenParameters", { forbiddenParameters: ["Tag"] }],
  ["forbiddenParameters", { forbiddenParameters: ["nonce"] }],
  ["forbiddenComponents", { forbiddenComponents: [] }],
  ["forbiddenComponents", { forbiddenComponents: ["Date"] }],
  ["forbiddenComponents", { forbiddenComponents: ["@method"] }],
  ["forbiddenComponents", { forbiddenComponents: ["priority"], requiredComponents: ['"priority";key="u"'] }],
  ["forbiddenComponents", { forbiddenComponents: ['"x";bs'], requiredComponents: ['"x";bs'] }],
  ["forbiddenComponents", { forbiddenComponents: ["@status"] }],
  ["requiredComponents", { requiredComponents: ['"@method";req'] }],
  ["requiredComponents", { requiredComponents: ['"date";tr'] }],
  ["requiredComponents", { requiredComponents: ["@query-param"] }],
  ["requiredComponents", { requiredComponents: ['"x-list";sf'] }],
  ["requiredComponents", { requiredComponents: ['"host";bs'] }],
  ["requiredComponents", { requiredComponents: ['"date'] }],
  ["fieldTypes", { fieldTypes: {} }],
  ["fieldTypes", { fieldTypes: { "X-List": "list" } }],
  ["fieldTypes", { fieldTypes: { "x-list": "array" } }],
  ["label", { label: "Sig1" }],
  ["allowUnsignedBody", { allowUnsignedBody: "yes" }],
])("an option that contradicts itself or another throws: %s %j", (option, change) => {
  const options = { keys: { a: servicePublicPem }, nonces: memoryNonceStore(), ...change };
  expect(() => httpSignatureVerify(options as never)).toThrow(expect.objectContaining({ option }));
});

function idRequired(): Partial<HttpSignatureVerifyOptions> {
  return { ...defaults(), requiredComponents: ['"@query-param";name="id"'], allowUnsignedQuery: true };
}

function withId(identifier: string, sent: string, value: string): SigningPlan {
  return { path: `${samplePath}?id=${sent}`, covered: [...four, [identifier, value]] };
}
