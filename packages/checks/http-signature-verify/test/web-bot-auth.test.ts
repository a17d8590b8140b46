import { afterEach, describe, expect, test } from "@jest/globals";
import { memoryNonceStore, type HttpSignatureVerifyOptions } from "@countersign/http-signature-verify";
import express from "express";
import {
  samplePath,
  signRequest,
  type SigningPlan,
} from "@countersign/test-support/signers/independent-signer.ts";
import { startPlatform, type Platform } from "./platform.ts";

let platform: Platform;
afterEach(() => platform.close());

// Automated clients that name themselves: GET requests over the authority, with a tag of their own and no alg.
const policy: Partial<HttpSignatureVerifyOptions> = {
  origin: "https://shop.example",
  requiredComponents: ["@authority"],
  requiredParameters: ["created", "expires", "keyid", "tag"],
  tag: { require: "web-bot-auth" },
  fieldTypes: { "signature-agent": "dictionary" },
  windowSeconds: 3600,
  allowUnsignedQuery: true,
};
const agent = '"https://bot.example"';
const plan: SigningPlan = {
  method: "GET",
  body: "",
  lifetime: 3600,
  covered: [
    ['"@authority"', "shop.example"],
    ['"signature-agent";key="sig1"', agent],
  ],
  parameters: { alg: undefined, nonce: undefined, tag: '"web-bot-auth"' },
};

async function codeOf(change: SigningPlan, agents = `sig1=${agent}`): Promise<string | undefined> {
  platform = await startPlatform(express, { nonces: memoryNonceStore(), ...policy });
  const signed = signRequest({ ...plan, ...change });
  await platform.send({ ...signed, headers: [...signed.headers, "Signature-Agent", agents] });
  return platform.codes[0];
}

describe("a policy for Web Bot Auth", () => {
  test("takes a signed GET, whatever its path and query", async () => {
    expect(await codeOf({ path: `${samplePath}?page=2` })).toBeUndefined();
    expect(platform.reached[0]?.signature).toMatchObject({ tag: "web-bot-auth", nonce: undefined });
  });

  test("takes a nonce, once", async () => {
    const withNonce = { ...plan, parameters: { ...plan.parameters, nonce: '"n-1"' } };
    expect(await codeOf(withNonce)).toBeUndefined();
    const again = signRequest(withNonce);
    const headers = [...again.headers, "Signature-Agent", `sig1=${agent}`];
    expect((await platform.send({ ...again, headers })).status).toBe(401);
    expect(platform.codes).toEqual(["nonce-replayed"]);
  });

  test.each<[string, string, SigningPlan, string?]>([
    ["no tag", "tag-invalid", { parameters: { ...plan.parameters, tag: undefined } }],
    ["another agent", "signature-mismatch", {}, 'sig1="https://other.example"'],
    ["no agent of the label", "covered-field-missing", {}, `sig2=${agent}`],
    ["a body that nothing signs", "body-not-covered", { method: "POST", body: "{}" }],
  ])("refuses %s: %s", async (_title, code, change, agents = `sig1=${agent}`) => {
    expect(await codeOf(change, agents)).toBe(code);
  });
});
