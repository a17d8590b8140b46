import { generateKeyPairSync } from "node:crypto";
import {
  importVerificationKey,
  MessageSignatureError,
  readSignature,
  verify,
  verifySignature,
  verifySignatureAsync,
} from "@countersign/http-message-signatures";
import { describe, expect, test } from "@jest/globals";
import { key, now, profile, signedRequest, strict, verdictOf } from "./hand-signer.ts";

const stranger = importVerificationKey("test-key", generateKeyPairSync("ed25519").publicKey);

describe("verify", () => {
  test("returns what was signed", () => {
    const received = verify(signedRequest(), strict);
    expect(received).toMatchObject({
      label: "sig1",
      keyid: "test-key",
      alg: "ed25519",
      created: now,
      expires: now + 60,
      nonce: "n-0001",
      coveredComponents: ["@method", "@path", "content-type", "content-digest"],
    });
    expect(received.signature).toHaveLength(64);
  });

  test.each(["native", "noble", undefined] as const)("verifies by the engine %s", (engine) => {
    expect(verdictOf(() => verify(signedRequest(), { ...strict, engine }))).toBe("accepted");
    const keys = () => stranger;
    expect(verdictOf(() => verify(signedRequest(), { ...strict, engine, keys }))).toBe("signature-mismatch");
  });

  test("reads the system clock by default", () => {
    const created = Math.floor(Date.now() / 1000);
    const at = (seconds: number) =>
      signedRequest({ parameters: { created: String(seconds), expires: String(seconds + 60) } });
    const options = { ...strict, now: undefined };
    expect(verdictOf(() => verify(at(created), options))).toBe("accepted");
    expect(verdictOf(() => verify(at(created - 100), options))).toBe("signature-expired");
    expect(verdictOf(() => verify(at(created + 100), options))).toBe("created-in-future");
  });

  test("throws an error that says the code and nothing of the signature", () => {
    const message = signedRequest({ method: "PUT" });
    expect(() => verify(message, strict)).toThrow(MessageSignatureError);
    try {
      verify(message, strict);
    } catch (error) {
      expect(error).toMatchObject({ name: "MessageSignatureError", code: "signature-mismatch" });
      expect(String(error)).not.toContain(message.rawHeaders.at(-1)?.slice(6, 20));
    }
  });
});

describe("verifySignature", () => {
  test("verifies what readSignature read, with the key given", () => {
    const received = readSignature(signedRequest(), profile);
    expect(verdictOf(() => verifySignature(received, key))).toBe("accepted");
    expect(verdictOf(() => verifySignature(received, stranger))).toBe("signature-mismatch");
    expect(verdictOf(() => verifySignature(received, undefined))).toBe("key-unknown");
  });

  test("reports a component that cannot be computed before an unknown keyid", () => {
    const message = signedRequest({ covered: [['"@scheme"', "https"]] });
    const received = readSignature(message, { ...profile, requiredComponents: [] });
    expect(verdictOf(() => verifySignature(received, undefined))).toBe("covered-field-missing");
  });
});

test("verifySignatureAsync has the verdicts of verifySignature", async () => {
  const received = readSignature(signedRequest(), profile);
  const uncomputable = readSignature(signedRequest({ covered: [['"@scheme"', "https"]] }), {
    ...profile,
    requiredComponents: [],
  });
  const retired = importVerificationKey("test-key", key.publicKey, { retired: true });
  await expect(verifySignatureAsync(received, key)).resolves.toBeUndefined();
  await expect(verifySignatureAsync(received, stranger)).rejects.toMatchObject({
    code: "signature-mismatch",
  });
  await expect(verifySignatureAsync(received, undefined)).rejects.toMatchObject({ code: "key-unknown" });
  await expect(verifySignatureAsync(received, { ...key })).rejects.toMatchObject({ code: "key-mismatch" });
  await expect(verifySignatureAsync(received, retired)).rejects.toMatchObject({ code: "key-retired" });
  await expect(verifySignatureAsync(uncomputable, key)).rejects.toMatchObject({
    code: "covered-field-missing",
  });
});
