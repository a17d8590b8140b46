import { masked, maskerOf } from "@countersign/loopback-page";
import { describe, expect, test } from "@jest/globals";

const secret = 'päss "word"+/ 92bc';
const mask = maskerOf({ texts: [secret], credentials: [{ username: "user", password: "other-word" }] });
const base64 = (text: string): string => Buffer.from(text, "utf8").toString("base64");

describe("maskerOf", () => {
  test.each([
    ["as it is", secret],
    ["in JSON", JSON.stringify(secret).slice(1, -1)],
    ["percent-encoded", encodeURIComponent(secret)],
    [
      "percent-encoded in lower case",
      encodeURIComponent(secret).replaceAll(/%../g, (hex) => hex.toLowerCase()),
    ],
    ["as of a form", encodeURIComponent(secret).replaceAll("%20", "+")],
    ["hex", Buffer.from(secret, "utf8").toString("hex")],
    ["base64", base64(secret)],
    ["base64 without padding", base64(secret).replace(/=+$/, "")],
    ["base64url", Buffer.from(secret, "utf8").toString("base64url")],
    ["read as latin1", Buffer.from(secret, "utf8").toString("latin1")],
    ["the password alone", "other-word"],
    ["the credentials of RFC 7617", base64("user:other-word")],
  ])("finds a secret: %s", (_name, text) => {
    expect(mask({ list: [`before ${text} after`], number: 5 })).toEqual({
      list: [`before ${masked} after`],
      number: 5,
    });
  });

  test.each([0, 1, 2, 3])("finds a secret in the base64 of something longer, %i bytes on", (length) => {
    const text = base64(`${"x".repeat(length)}${secret}${"y".repeat(7)}`);
    const shown = mask(text);
    expect(shown).toContain(masked);
    // What is left beside it is less than a character of the secret on either side.
    for (const part of shown.split(masked)) {
      expect(Buffer.from(part, "base64").toString("latin1")).not.toMatch(/[pa]ss|92/);
    }
  });

  test("leaves what is no secret, and takes a text of three characters for none", () => {
    const value = { a: "word", b: [null, true, "user"] };
    expect(mask(value)).toEqual(value);
    expect(maskerOf({ texts: ["abc"] })("abc abc")).toBe("abc abc");
    expect(maskerOf({})(value)).toBe(value);
  });
});
