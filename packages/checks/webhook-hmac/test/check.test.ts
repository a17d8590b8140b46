import { setImmediate as nextTurn } from "node:timers/promises";
import { signPayload, verifyPayload } from "@countersign/webhook-hmac";
import { describe, expect, test } from "@jest/globals";

// TEST SECRETS.
const secrets = ["test-secret-new", "test-secret-old"];
const bytes = Buffer.from('{"events":[]}');

describe("verifyPayload", () => {
  test.each([
    ["missing", undefined],
    ["malformed", "x"],
    ["wrong", signPayload(bytes, "another")],
  ])("refuses a signature that is %s", (reason, signature) => {
    expect(() => verifyPayload(bytes, signature, secrets)).toThrow(
      expect.objectContaining({ status: 401, code: `payload-signature-${reason}` }),
    );
  });

  test("takes spaces and tabs around the value, and nothing else", () => {
    const signature = signPayload(bytes, "test-secret-new");
    expect(verifyPayload(bytes, ` \t${signature}\t `, secrets)).toEqual({ bytes, secretIndex: 0 });
    for (const blank of ["\u00a0", "\v", "\f", "\r", "\n", "\ufeff"]) {
      expect(() => verifyPayload(bytes, signature + blank, secrets)).toThrow(
        expect.objectContaining({ code: "payload-signature-malformed" }),
      );
    }
  });

  // With an expression that takes quadratic time 2,000 of them were a minute, which jest ends.
  test("refuses thousands of spaces inside the value at once, however often", async () => {
    const field = `x${" ".repeat(8_000)}x`;
    for (let count = 0; count < 2_000; count += 1) {
      if (count % 100 === 0) await nextTurn();
      expect(() => verifyPayload(bytes, field, secrets)).toThrow(
        expect.objectContaining({ code: "payload-signature-malformed" }),
      );
    }
  });

  test.each([
    ["no secrets", () => verifyPayload(bytes, "x", [])],
    ["a text for bytes", () => verifyPayload("{}" as never, signPayload(bytes, "s"), secrets)],
    ["a function for secrets", () => verifyPayload(bytes, "x", (() => secrets) as never)],
  ])("throws on %s", (_name, verify) => {
    expect(verify).toThrow(TypeError);
  });
});
