import { generateKeyPairSync } from "node:crypto";
import { createContentDigest } from "@countersign/content-digest";
import {
  createSigner,
  importVerificationKey,
  sign,
  signAsync,
  type RequestMessage,
} from "@countersign/http-message-signatures";
import { receiptComponents } from "@countersign/http-message-signatures/internal";
import { ReceiptError, verifyReceipt } from "countersign/client";
import type { SignedExchange } from "../../dist/client/receipt.js";
import { describe, expect, test } from "@jest/globals";

type ReceiptOptions = Parameters<typeof verifyReceipt>[1];

const service = generateKeyPairSync("ed25519");
const platform = generateKeyPairSync("ed25519");
const key = importVerificationKey("platform-2026", platform.publicKey);
const options: ReceiptOptions = {
  keys: (keyid) => (keyid === key.keyid ? key : undefined),
  now: 1_800_000_010,
};

function requestOf(body: string, label = "sig1"): RequestMessage {
  const rawHeaders = [
    "Content-Type",
    "application/json",
    "Content-Digest",
    createContentDigest(Buffer.from(body)),
  ];
  const unsigned = { method: "POST", target: "/api/v1/transaction", rawHeaders };
  const fields = sign(unsigned, { key: service.privateKey, keyid: "service", label, created: 1_800_000_000 });
  return {
    ...unsigned,
    rawHeaders: [...rawHeaders, "Signature-Input", fields.signatureInput, "Signature", fields.signature],
  };
}

/** What a platform answers: `text`, signed for this request. */
async function answerTo(
  request: RequestMessage,
  { status = 200, text = '{"status":"acknowledged"}', described = [] as string[], ...changes } = {},
) {
  const body = Buffer.from(text);
  const digest = ["Content-Digest", createContentDigest(body)];
  const rawHeaders = ["Content-Type", "application/json", ...described, ...digest];
  const response = { status, rawHeaders, request };
  const components = receiptComponents(response, "sig1");
  const fields = await signAsync(response, {
    signer: createSigner(platform.privateKey, "platform-2026"),
    components,
    label: "receipt",
    created: 1_800_000_000,
    parameters: ["created", "keyid", "alg"],
    ...changes,
  });
  const signed = ["Signature-Input", fields.signatureInput, "Signature", fields.signature];
  return { request, status, rawHeaders: [...rawHeaders, ...signed], body };
}

function codeOf(exchange: SignedExchange, changes: Partial<ReceiptOptions> = {}): string {
  try {
    verifyReceipt(exchange, { ...options, ...changes });
    return "receipt";
  } catch (error) {
    if (!(error instanceof ReceiptError)) throw error;
    return error.code;
  }
}

describe("verifyReceipt", () => {
  test("says what was signed", async () => {
    expect(verifyReceipt(await answerTo(requestOf("{}"), { status: 409 }), options)).toEqual({
      status: 409,
      keyid: "platform-2026",
      created: 1_800_000_000,
      label: "receipt",
    });
  });

  const typed = (rawHeaders: readonly string[]) => ["Content-Type", "text/plain", ...rawHeaders.slice(2)];

  test.each<[string, (exchange: SignedExchange) => Partial<SignedExchange>, string]>([
    ["another status", () => ({ status: 201 }), "signature-mismatch"],
    ["another body", () => ({ body: Buffer.from("{}") }), "content-digest-mismatch"],
    ["another media type", ({ rawHeaders }) => ({ rawHeaders: typed(rawHeaders) }), "signature-mismatch"],
    ["no signature", ({ rawHeaders }) => ({ rawHeaders: rawHeaders.slice(0, 4) }), "signature-missing"],
    ["another method", ({ request }) => ({ request: { ...request, method: "PUT" } }), "signature-mismatch"],
    ["another path", ({ request }) => ({ request: { ...request, target: "/other" } }), "signature-mismatch"],
  ])("refuses %s", async (_name, change, code) => {
    const exchange = await answerTo(requestOf("{}"));
    expect(codeOf({ ...exchange, ...change(exchange) })).toBe(code);
  });

  const made = ["Location", "/payouts/1", "Content-Encoding", "gzip"];

  test("covers where it is, and its coding, where an answer has them", async () => {
    expect(codeOf(await answerTo(requestOf("{}"), { status: 201, described: made }))).toBe("receipt");
  });

  const valueOf = (name: string, value: string) => (lines: readonly string[]) =>
    lines.map((line, index) => (lines[index - 1] === name ? value : line));
  const without = (name: string) => (lines: readonly string[]) =>
    lines.filter((line, index) => line !== name && lines[index - 1] !== name);

  test.each<[string, string[], (rawHeaders: readonly string[]) => readonly string[], string]>([
    ["another Location", made, valueOf("Location", "/payouts/2"), "signature-mismatch"],
    ["no Location any more", made, without("Location"), "covered-field-missing"],
    ["a Location of somebody else", [], (lines) => [...made.slice(0, 2), ...lines], "component-required"],
    ["another content coding", made, valueOf("Content-Encoding", "br"), "signature-mismatch"],
    ["no content coding any more", made, without("Content-Encoding"), "covered-field-missing"],
    ["somebody else's content coding", [], (lines) => [...made.slice(2), ...lines], "component-required"],
  ])("refuses %s", async (_name, described, change, code) => {
    const { rawHeaders, ...exchange } = await answerTo(requestOf("{}"), { described });
    expect(codeOf({ ...exchange, rawHeaders: change(rawHeaders) })).toBe(code);
  });

  test.each<[string, Partial<ReceiptOptions>, string]>([
    ["an unknown keyid", { keys: () => undefined }, "key-unknown"],
    ["another tag than the one due", { tag: "receipt" }, "tag-mismatch"],
    ["another label than the one due", { label: "sig1" }, "signature-missing"],
    ["a receipt that is too old", { now: 1_800_000_301 }, "signature-expired"],
    ["a receipt of later", { now: 1_799_999_969 }, "created-in-future"],
  ])("refuses %s", async (_name, changes, code) => {
    expect(codeOf(await answerTo(requestOf("{}")), changes)).toBe(code);
  });

  test("takes one at the ends of its time", async () => {
    const exchange = await answerTo(requestOf("{}"));
    expect([1_800_000_300, 1_799_999_970].map((now) => codeOf(exchange, { now }))).toEqual([
      "receipt",
      "receipt",
    ]);
  });

  test.each(["@status", "content-digest", '"@path";req', '"signature";req;key="sig1"'])(
    "refuses a signature that does not cover %s",
    async (left) => {
      const request = requestOf("{}");
      const components = receiptComponents({ rawHeaders: ["Content-Type", ""], request }, "sig1");
      const exchange = await answerTo(request, {
        components: components.filter((each) => each !== left),
      } as object);
      expect(codeOf(exchange)).toBe("component-required");
    },
  );

  // The same instruction, sent again with another nonce, is another request too.
  test("refuses every answer that was exchanged between two requests", async () => {
    const bodies = ["{}", "{}", '{"a":1}', '{"a":2}', ""];
    const exchanges = await Promise.all(bodies.map((body) => answerTo(requestOf(body))));
    for (const { request } of exchanges) {
      for (const exchange of exchanges) {
        const expected = request === exchange.request ? "receipt" : "signature-mismatch";
        expect(codeOf({ ...exchange, request })).toBe(expected);
      }
    }
  });

  test("wants to know which of two signatures of a request is meant, and that there is one", async () => {
    const exchange = await answerTo(requestOf("{}"));
    const second = requestOf("{}", "sig2").rawHeaders.slice(4);
    const twice = {
      ...exchange.request,
      rawHeaders: [...exchange.request.rawHeaders, ...second],
    };
    expect(() => codeOf({ ...exchange, request: twice })).toThrow("give requestLabel");
    expect(codeOf({ ...exchange, request: twice }, { requestLabel: "sig1" })).toBe("receipt");
    expect(() => codeOf(exchange, { requestLabel: "sig2" })).toThrow("give requestLabel");
    expect(() => codeOf({ ...exchange, request: { ...twice, rawHeaders: [] } })).toThrow("give requestLabel");
  });
});
