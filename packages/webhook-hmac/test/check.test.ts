import { signPayload, verifyPayload } from "@countersign/webhook-hmac";
import { describe, expect, test } from "@jest/globals";

// TEST SECRETS.
const secrets = ["test-secret-new", "test-secret-old"];
const bytes = Buffer.from('{"events":[]}');

describe("verifyPayload", () => {
  test.each([0, 1])("finds the secret at %s", (index) => {
    const signature = signPayload(bytes, secrets[index] ?? "");
    expect(verifyPayload(new Uint8Array(bytes), signature, secrets)).toEqual({ bytes, secretIndex: index });
  });

  test.each([
    ["missing", undefined],
    ["malformed", "x"],
    ["wrong", signPayload(bytes, "another")],
  ])("refuses a signature that is %s", (reason, signature) => {
    expect(() => verifyPayload(bytes, signature, secrets)).toThrow(
      expect.objectContaining({ status: 401, code: `payload-signature-${reason}` }),
    );
  });

  test.each([
    ["no secrets", () => verifyPayload(bytes, "x", [])],
    ["a text for bytes", () => verifyPayload("{}" as never, signPayload(bytes, "s"), secrets)],
    ["a function for secrets", () => verifyPayload(bytes, "x", (() => secrets) as never)],
  ])("throws on %s", (_name, verify) => {
    expect(verify).toThrow(TypeError);
  });
});
