import { verifyBasicAuth } from "@countersign/webhook-basic-auth";
import { describe, expect, test } from "@jest/globals";

// TEST CREDENTIALS.
const credentials = [
  { username: "service", password: "test-new" },
  { username: "service", password: "test-old" },
];
const basic = (text: string): string => `Basic ${Buffer.from(text).toString("base64")}`;

describe("verifyBasicAuth", () => {
  test("finds the credential", () => {
    const found = verifyBasicAuth(basic("service:test-old"), credentials);
    expect(found).toEqual({ username: "service", index: 1 });
  });

  test.each([
    ["missing", undefined],
    ["malformed", "Bearer x"],
    ["wrong", basic("service:guess")],
  ])("refuses a field that is %s", (reason, authorization) => {
    expect(() => verifyBasicAuth(authorization, credentials, { status: 403 })).toThrow(
      expect.objectContaining({ status: 403, code: `credentials-${reason}` }),
    );
  });

  test("throws on no credentials", () => {
    expect(() => verifyBasicAuth(basic("a:b"), [])).toThrow(TypeError);
  });
});
