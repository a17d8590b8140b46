import { generateKeyPairSync } from "node:crypto";
import { describe, expect, test } from "@jest/globals";
import {
  createSigner,
  importVerificationKey,
  sign,
  signAsync,
  verify,
  verifySignatures,
  withSignature,
  type RequestMessage,
  type ResponseMessage,
  type VerifyOptions,
} from "@countersign/http-message-signatures";
import type { SignatureOptions } from "../dist/sign.js";
import { key, now, privateKey, strict, verdictOf } from "./hand-signer.ts";

const signing = { key: privateKey, keyid: "test-key", created: now };
const digest = "sha-256=:X48E9qOokqqrvdts8nOJRJN3OWDUoyWxBf7kbu9DBPE=:";

function requestOf(number: number): RequestMessage {
  const rawHeaders = ["Content-Type", "application/json", "Content-Digest", digest];
  const message: RequestMessage = { method: "POST", target: "/pay", rawHeaders };
  return withSignature(message, sign(message, { ...signing, nonce: `n-${number}` }));
}

const bound = ["@status", "content-type", '"@method";req', '"@path";req', '"signature";req;key="sig1"'];

function responseTo(request: RequestMessage): ResponseMessage {
  const message = { status: 200, rawHeaders: ["Content-Type", "application/json"], request };
  return withSignature(message, sign(message, { ...signing, label: "receipt", components: bound }));
}

const receipt: VerifyOptions = { ...strict, requiredComponents: bound };

describe("a signed response", () => {
  test("verifies with no other request, of all pairs of twenty", () => {
    const requests = Array.from({ length: 20 }, (_, index) => requestOf(index));
    const responses = requests.map(responseTo);
    const verdicts = responses.map((response) =>
      requests.map((request) => verdictOf(() => verify({ ...response, request }, receipt))),
    );
    expect(verdicts).toEqual(
      requests.map((_one, row) =>
        requests.map((_other, column) => (row === column ? "accepted" : "signature-mismatch")),
      ),
    );
  });

  test.each<[string, string, (response: ResponseMessage) => ResponseMessage]>([
    [
      "a request without the signature",
      "covered-field-missing",
      (response) => ({ ...response, request: { method: "POST", target: "/pay", rawHeaders: [] } }),
    ],
    [
      "a request that is ambiguous",
      "target-invalid",
      (response) => ({ ...response, request: { ...requestOf(1), target: "//pay" } }),
    ],
  ])("is refused with %s: %s", (_title, code, change) => {
    expect(verdictOf(() => verify(change(responseTo(requestOf(1))), receipt))).toBe(code);
  });

  test("needs its components named", () => {
    expect(() => sign({ status: 200, rawHeaders: [] }, signing)).toThrow(/option components is required/);
  });
});

describe("several signatures on a message", () => {
  const other = generateKeyPairSync("ed25519");
  const otherKey = importVerificationKey("other", other.publicKey);
  const first: VerifyOptions = { ...strict, label: "sig1" };
  const second: VerifyOptions = { ...strict, tag: { require: ["proxy"] }, keys: () => otherKey };
  const plain: RequestMessage = {
    method: "POST",
    target: "/pay",
    rawHeaders: ["Content-Type", "application/json", "Content-Digest", digest],
  };
  const one = withSignature(plain, sign(plain, { ...signing, nonce: "a" }));
  const secondOptions = { key: other.privateKey, keyid: "other", created: now, label: "proxy", tag: "proxy" };
  const components = ["@method", "@path", "content-type", "content-digest", '"signature";key="sig1"'];
  const both = withSignature(one, sign(one, { ...secondOptions, components }));
  const labels = (message: RequestMessage, profiles: VerifyOptions[], need: "all" | "any"): string =>
    verifySignatures(message, profiles, need)
      .map(({ label }) => label)
      .join();

  test("all verify, each by its profile", () => {
    expect(labels(both, [first, second], "all")).toBe("sig1,proxy");
    expect(labels(both, [second, first], "all")).toBe("proxy,sig1");
  });

  test("one of any is enough, and only what verified is returned", () => {
    expect(labels(one, [second, first], "any")).toBe("sig1");
    expect(labels(both, [first, second], "any")).toBe("sig1,proxy");
  });

  test.each<[string, string, RequestMessage, VerifyOptions[], "all" | "any"]>([
    ["one of all by a wrong key", "signature-mismatch", both, [first, { ...second, keys: wrong }], "all"],
    ["two signatures for one profile", "signature-ambiguous", both, [first, { ...strict }], "all"],
    ["two signatures for one profile of any", "signature-ambiguous", both, [{ ...strict }, first], "any"],
  ])("refuses %s: %s", (_title, code, message, profiles, need) => {
    expect(verdictOf(() => verifySignatures(message, profiles, need))).toBe(code);
  });

  test("are asked for: no profile is a mistake", () => {
    expect(() => verifySignatures(both, [], "any")).toThrow(TypeError);
  });

  test("have labels of their own", () => {
    expect(() => withSignature(one, sign(one, signing))).toThrow(/label sig1 already/);
    const half = { ...plain, rawHeaders: [...plain.rawHeaders, "Signature", "sig1=:AA==:"] };
    expect(() => withSignature(half, sign(half, signing))).toThrow(/label sig1 already/);
  });

  function wrong() {
    return importVerificationKey("other", generateKeyPairSync("ed25519").publicKey);
  }
});

describe("signAsync", () => {
  const message = requestOf(1);
  const options: SignatureOptions = { created: now, nonce: "n", label: "kms" };

  test("writes what sign() writes, by a signer that takes its time", async () => {
    const local = createSigner(privateKey, "test-key");
    const slow = {
      ...local,
      sign: async (data: Uint8Array) => {
        await new Promise(setImmediate);
        return local.sign(data);
      },
    };
    const fields = await signAsync(message, { ...options, signer: slow });
    expect(fields).toEqual(sign(message, { ...options, key: privateKey, keyid: "test-key" }));
    const received = verify(withSignature(message, fields), { ...strict, label: "kms" });
    expect(received.keyid).toBe(key.keyid);
  });

  test.each<[string, unknown]>([
    ["text", "AAAA"],
    ["nothing", undefined],
    ["no byte", new Uint8Array()],
  ])("rejects a signer that gives %s", async (_title, given) => {
    const signer = { alg: "ed25519" as const, keyid: "k", sign: () => given as Uint8Array };
    await expect(signAsync(message, { ...options, signer })).rejects.toThrow(/the signer gave no bytes/);
  });

  test("rejects an algorithm that is not of the registry", async () => {
    const signer = { ...createSigner(privateKey, "k"), alg: "none" as never };
    await expect(signAsync(message, { ...options, signer })).rejects.toThrow(/^sign: the signer's alg/);
  });
});

describe("the parameters of a signature", () => {
  const message = requestOf(1);
  const inputOf = (options: Partial<SignatureOptions>): string =>
    sign(message, { ...signing, label: "a", components: ["@method"], ...options }).signatureInput;

  test("stand in the order that is given, and no others", () => {
    expect(inputOf({ parameters: ["keyid", "created"] })).toBe(
      `a=("@method");keyid="test-key";created=${now}`,
    );
    expect(inputOf({ parameters: ["tag", "expires"], tag: "t" })).toBe(
      `a=("@method");tag="t";expires=${now + 60}`,
    );
    expect(inputOf({ parameters: [], created: undefined })).toBe('a=("@method")');
  });

  test.each<[string, object]>([
    ["an unknown one", { parameters: ["created", "x"] }],
    ["one twice", { parameters: ["created", "created"] }],
    ["a nonce that is not signed", { parameters: ["created"], nonce: "n" }],
    ["a time that is not signed", { parameters: ["keyid"] }],
    ["a tag that is not given", { parameters: ["created", "tag"] }],
  ])("throw a TypeError: %s", (_title, options) => {
    expect(() => inputOf(options)).toThrow(/^sign: option /);
  });
});
