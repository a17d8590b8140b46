import { describe, expect, test } from "@jest/globals";
import { signPayload, signPayloadHeaders } from "@countersign/webhook-hmac";

const secret = "test-secret";
const jefe = Buffer.from("Jefe").toString("hex");

describe("signPayload", () => {
  // RFC 4231 sections 4.2 to 4.4, 4.7 and 4.8.
  test.each([
    [
      "case 1",
      "0b".repeat(20),
      Buffer.from("Hi There"),
      "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7",
    ],
    [
      "case 2",
      jefe,
      Buffer.from("what do ya want for nothing?"),
      "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843",
    ],
    [
      "case 3",
      "aa".repeat(20),
      Buffer.alloc(50, 0xdd),
      "773ea91e36800e46854db8ebd09181a72959098b3ef8c122d9635514ced565fe",
    ],
    [
      "case 6",
      "aa".repeat(131),
      Buffer.from("Test Using Larger Than Block-Size Key - Hash Key First"),
      "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54",
    ],
  ])("gives the answer of RFC 4231, %s", (_name, key, bytes, expected) => {
    const hex = { header: "X-S", secretEncoding: "hex", signatureEncodings: ["hex"] } as const;
    expect(signPayloadHeaders(bytes, key, { scheme: hex })).toEqual({ "X-S": expected });
    const base64 = { header: "X-S", secretEncoding: "base64" } as const;
    const inBase64 = Buffer.from(key, "hex").toString("base64");
    expect(signPayloadHeaders(bytes, inBase64, { scheme: base64 })).toEqual({
      "X-S": Buffer.from(expected, "hex").toString("base64"),
    });
    if (key === jefe)
      expect(signPayload(bytes, "Jefe")).toBe(Buffer.from(expected, "hex").toString("base64"));
  });

  test("signs any Uint8Array, also an empty one", () => {
    expect(signPayload(new Uint8Array([0xff]), secret)).toBe(signPayload(Buffer.from([0xff]), secret));
    expect(signPayload(new Uint8Array(), secret)).toMatch(/^[A-Za-z0-9+/]{43}=$/);
  });

  test.each<[string, unknown, unknown]>([
    ["text for bytes", "{}", secret],
    ["an object for bytes", { length: 1 }, secret],
    ["an empty secret", Buffer.from("x"), ""],
    ["no secret", Buffer.from("x"), undefined],
  ])("throws on %s", (_name, bytes, key) => {
    const sign = (): unknown => signPayload(bytes as Buffer, key as string);
    expect(sign).toThrow(TypeError);
    expect(sign).toThrow(/^signPayload: /);
    expect(sign).not.toThrow(/test-secret/);
  });
});
