// What the adapter adds; receipts of payouts run through it in test/e2e.
import { generateKeyPairSync } from "node:crypto";
import { setImmediate } from "node:timers/promises";
import { createContentDigest } from "@countersign/content-digest";
import { checkedRoute, signedRoute, type FetchRoute } from "@countersign/fetch";
import { sign } from "@countersign/http-message-signatures";
import { createSigner, type Signer } from "@countersign/http-signature-verify/sign";
import { httpSignatureVerifier, memoryNonceStore } from "@countersign/http-signature-verify";
import { describe, expect, test } from "@jest/globals";

const service = generateKeyPairSync("ed25519");
const signer = createSigner(generateKeyPairSync("ed25519").privateKey, "platform");

function routeOf(answer: () => Response, signing: Signer = signer, limit = "1mb"): FetchRoute {
  const verify = httpSignatureVerifier({ keys: { service: service.publicKey }, nonces: memoryNonceStore() });
  const route = checkedRoute({ name: "httpSignatureVerify" }, (received) => verify(received), answer);
  return signedRoute({ signer: signing, limit }, route);
}

function signedRequest(method = "POST"): Request {
  const body = method === "HEAD" ? "" : "{}";
  const rawHeaders = [
    "Content-Type",
    "application/json",
    "Content-Digest",
    createContentDigest(Buffer.from(body)),
  ];
  const { privateKey: key } = service;
  const fields = sign({ method, target: "/a", rawHeaders }, { key, keyid: "service" });
  const headers = {
    "Content-Type": "application/json",
    "Content-Digest": createContentDigest(Buffer.from(body)),
    "Signature-Input": fields.signatureInput,
    Signature: fields.signature,
  };
  return new Request("https://platform.example/a", { method, headers, ...(body !== "" && { body }) });
}

const signedFields = ({ headers }: Response): readonly boolean[] =>
  ["content-digest", "signature-input", "signature"].map((name) => headers.has(name));

/** A stream of 16 kB pieces that never ends. */
function streamOf(onCancel: () => void = () => {}) {
  let [pulled, cancelled] = [0, 0];
  const stream = new ReadableStream<Uint8Array>({
    async pull(controller) {
      // As a source that reads: whoever reads it without an end leaves time to others.
      await setImmediate();
      pulled += 1;
      controller.enqueue(new Uint8Array(16_384));
    },
    cancel() {
      cancelled += 1;
      onCancel();
    },
  });
  return { stream, pulled: () => pulled, cancelled: () => cancelled };
}

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

  test("leaves the answer to a stranger as it is", async () => {
    const stranger = new Request("https://platform.example/a", { method: "POST", body: "{}" });
    const response = await routeOf(() => new Response("paid"))(stranger);
    expect([response.status, signedFields(response)]).toEqual([401, [false, false, false]]);
  });

  test("hands the answer to a stranger on as it comes, however long", async () => {
    const endless = streamOf();
    const answer = new Response(endless.stream);
    const response = await signedRoute(
      { signer },
      async () => answer,
    )(new Request("https://platform.example/a"));
    expect(response).toBe(answer);
    expect(endless.pulled()).toBeLessThan(3);
    await response.body?.cancel();
  });

  test.each<[string, (() => void) | undefined]>([
    ["", undefined],
    [
      ", whose source fails by that",
      () => {
        throw new Error("source");
      },
    ],
  ])("answers 500 over the limit without the rest of the stream%s", async (_what, onCancel) => {
    const endless = streamOf(onCancel);
    const response = await routeOf(() => new Response(endless.stream), signer, "100kb")(signedRequest());
    expect([response.status, signedFields(response)]).toEqual([500, [false, false, false]]);
    expect([endless.pulled() < 10, endless.cancelled()]).toEqual([true, 1]);
    // A rejection that nobody hears would be told by now.
    await setImmediate();
  });

  test("signs the answer to HEAD as it leaves: without content", async () => {
    const response = await routeOf(() => new Response("paid"))(signedRequest("HEAD"));
    expect([response.status, response.body, response.headers.get("content-digest")]).toEqual([
      200,
      null,
      createContentDigest(Buffer.alloc(0)),
    ]);
    expect(signedFields(response)).toEqual([true, true, true]);
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
