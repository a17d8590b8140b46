// What the door adds; receipts of payouts run through it in test/e2e.
import { generateKeyPairSync } from "node:crypto";
import { createContentDigest } from "@countersign/content-digest";
import { checkedRoute, signedRoute, type FetchRoute } from "@countersign/fetch";
import { sign } from "@countersign/http-message-signatures";
import { createSigner, type Signer } from "@countersign/http-signature-sign";
import { httpSignatureVerifier, memoryNonceStore } from "@countersign/http-signature-verify";
import { describe, expect, test } from "@jest/globals";

const service = generateKeyPairSync("ed25519");
const signer = createSigner(generateKeyPairSync("ed25519").privateKey, "platform");

function routeOf(answer: () => Response, signing: Signer = signer): FetchRoute {
  const verify = httpSignatureVerifier({ keys: { service: service.publicKey }, nonces: memoryNonceStore() });
  const route = checkedRoute({ name: "httpSignatureVerify" }, (received) => verify(received), answer);
  return signedRoute({ signer: signing }, route);
}

function signedRequest(): Request {
  const body = "{}";
  const rawHeaders = [
    "Content-Type",
    "application/json",
    "Content-Digest",
    createContentDigest(Buffer.from(body)),
  ];
  const { privateKey: key } = service;
  const fields = sign({ method: "POST", target: "/a", rawHeaders }, { key, keyid: "service" });
  const headers = {
    "Content-Type": "application/json",
    "Content-Digest": createContentDigest(Buffer.from(body)),
    "Signature-Input": fields.signatureInput,
    Signature: fields.signature,
  };
  return new Request("https://platform.example/a", { method: "POST", headers, body });
}

const signedFields = ({ headers }: Response): readonly boolean[] =>
  ["content-digest", "signature-input", "signature"].map((name) => headers.has(name));

describe("signedRoute", () => {
  test("signs the answer, and changes nothing else of it", async () => {
    const answer = () => new Response("paid", { status: 202, headers: { "X-Batch": "7" } });
    const response = await routeOf(answer)(signedRequest());
    expect([response.status, response.headers.get("x-batch"), await response.text()]).toEqual([
      202,
      "7",
      "paid",
    ]);
    expect(signedFields(response)).toEqual([true, true, true]);
  });

  test("signs an answer without a body", async () => {
    const response = await routeOf(() => new Response(null, { status: 204 }))(signedRequest());
    expect([response.status, response.body, signedFields(response)]).toEqual([204, null, [true, true, true]]);
  });

  test("leaves the answer to a stranger as it is", async () => {
    const stranger = new Request("https://platform.example/a", { method: "POST", body: "{}" });
    const response = await routeOf(() => new Response("paid"))(stranger);
    expect([response.status, signedFields(response)]).toEqual([401, [false, false, false]]);
  });

  test("answers 503 in the place of what cannot be signed", async () => {
    const broken: Signer = { ...signer, sign: () => Promise.reject(new Error("out of order")) };
    const response = await routeOf(() => new Response("paid"), broken)(signedRequest());
    expect([response.status, response.headers.get("retry-after"), signedFields(response)]).toEqual([
      503,
      "1",
      [false, false, false],
    ]);
  });
});
