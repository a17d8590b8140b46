import { describe, expect, test } from "@jest/globals";
import {
  answerAcceptSignature,
  createAcceptSignature,
  createSigner,
  parseAcceptSignature,
  verify,
  withSignature,
  type RequestMessage,
  type ResponseMessage,
} from "@countersign/http-message-signatures";
import type { AnswerOptions } from "../dist/accept-signature.js";
import { now, privateKey, profile, strict, verdictOf } from "./hand-signer.ts";

const signer = createSigner(privateKey, "test-key");
const request: RequestMessage = { method: "GET", target: "/balance", rawHeaders: ["Host", "example.com"] };
const response: ResponseMessage = { status: 200, rawHeaders: ["Content-Type", "text/plain"], request };
const components = ["@status", '"@path";req'];
const policy = { ...profile, requiredComponents: components };

async function answer(field: string, options: Partial<AnswerOptions> = {}): Promise<ResponseMessage> {
  const [asked] = parseAcceptSignature(field);
  if (asked === undefined) throw new Error("nothing is asked for");
  const fields = await answerAcceptSignature(response, asked, { signer, created: now, ...options });
  return withSignature(response, fields);
}

async function codeOf(answered: Promise<unknown>): Promise<unknown> {
  return answered.then(
    () => "answered",
    (error: unknown) => Object(error).code,
  );
}

describe("parseAcceptSignature", () => {
  test("reads the example of RFC 9421 section 5.1", () => {
    const field =
      'sig1=("@method" "@target-uri" "@authority" "content-digest" "cache-control");keyid="test-key-rsa-pss";created;tag="app-123"';
    const asked = parseAcceptSignature(field).get("sig1");
    expect(asked?.components.map(({ name }) => name)).toEqual([
      "@method",
      "@target-uri",
      "@authority",
      "content-digest",
      "cache-control",
    ]);
    expect([...(asked?.parameters.keys() ?? [])]).toEqual(["keyid", "created", "tag"]);
  });

  test.each([
    "",
    "sig1",
    "sig1=1",
    'sig1=("a"),',
    'sig1=("a");created=1',
    'sig1=("a");created=?0',
    'sig1=("a");expires=1',
    'sig1=("a");nonce',
    'sig1=("a");nonce=""',
    'sig1=("a");keyid=k',
    'sig1=("a");alg=ed25519',
    'sig1=("a");tag=1',
    'sig1=("a"), sig1=("b")',
  ])("refuses %j", (field) => {
    expect(verdictOf(() => parseAcceptSignature(field))).toBe("field-invalid");
  });
});

describe("createAcceptSignature", () => {
  test("asks for what a profile requires", () => {
    expect(createAcceptSignature(policy, { of: "response" })).toBe(
      'sig1=("@status" "@path";req);created;expires;alg="ed25519"',
    );
    const tagged = {
      ...policy,
      label: "r",
      tag: { require: ["t"] },
      requiredParameters: ["created"] as const,
    };
    expect(createAcceptSignature(tagged, { of: "response", nonce: 'a"b', keyid: "k" })).toBe(
      String.raw`r=("@status" "@path";req);created;keyid="k";nonce="a\"b";tag="t"`,
    );
  });

  test("refuses components that the message cannot have", () => {
    expect(verdictOf(() => createAcceptSignature(policy, { of: "request" }))).toBe("component-unsupported");
    const methods = { ...policy, requiredComponents: ["@method"] };
    expect(verdictOf(() => createAcceptSignature(methods, { of: "response" }))).toBe("component-unsupported");
  });

  test("refuses a nonce that has no serialisation", () => {
    const make = () => createAcceptSignature(policy, { of: "response", nonce: "a\nb" });
    expect(verdictOf(make)).toBe("field-invalid");
  });
});

describe("answerAcceptSignature", () => {
  test("signs what createAcceptSignature asks for, and the profile takes it", async () => {
    const field = createAcceptSignature(policy, {
      of: "response",
      label: "r",
      nonce: "fresh",
      keyid: "test-key",
    });
    const answered = await answer(field);
    const verified = verify(answered, { ...strict, requiredComponents: components, label: "r" });
    expect(verified).toMatchObject({ nonce: "fresh", coveredComponents: components, created: now });
  });

  test("signs as asked: label, components and parameters in their order, and no others", async () => {
    const { rawHeaders } = await answer('r=("content-type" "@status");tag="t";created', { tags: ["t"] });
    expect(rawHeaders).toContain(`r=("content-type" "@status");tag="t";created=${now}`);
    const without = await answer('r=("@status")');
    expect(without.rawHeaders).toContain('r=("@status")');
  });

  test.each([
    ["signature-request-refused", 'r=("@status");keyid="other"'],
    ["signature-request-refused", 'r=("@status");alg="hmac-sha256"'],
    ["signature-request-refused", 'r=("@status");tag="payout"'],
    ["signature-request-refused", 'r=("@status");created;x'],
    ["signature-request-refused", `r=("@status");nonce="${"n".repeat(129)}"`],
    ["component-unsupported", 'r=("@method")'],
    ["component-parameter-unsupported", 'r=("@status";sf)'],
    ["covered-field-missing", 'r=("cache-control")'],
    ["components-empty", "r=()"],
  ])("refuses with %s: %s", async (code, field) => {
    expect(await codeOf(answer(field))).toBe(code);
  });
});
