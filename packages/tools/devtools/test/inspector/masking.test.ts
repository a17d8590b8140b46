import { masking } from "../../dist/loopback/index.js";
import { describe, expect, test } from "@jest/globals";
import { encodings } from "./encodings.ts";

const secret = 'päss "word"+/ 92bc\u{1f511}';
const mask = masking.of({
  texts: [secret],
  credentials: [{ username: "user", password: "other-word" }],
});
const base64 = (text: string): string => Buffer.from(text, "utf8").toString("base64");
const encoded = (text: string, ...names: readonly string[]): string =>
  names.reduce((before, name) => (encodings.get(name) ?? ((): string => "no such encoding"))(before), text);

const names = [...encodings.keys()];
const nested: readonly (readonly string[])[] = [
  ["base64", "base64"],
  ["base64url", "base64 without padding"],
  ["base64", "base64", "base64"],
  ["base64", "base64", "JSON of escapes alone"],
  ["hex", "base64"],
  ["base64", "hex in upper case"],
  ["JSON", "JSON"],
  ["JSON of escapes alone", "JSON", "percent-encoded"],
  ["percent-encoded", "percent-encoded"],
  ["percent-encoded", "base64"],
  ["JSON of every second unit", "base64"],
  ["base64", "percent-encoded to the last byte"],
  ["base64 in lines", "JSON"],
  ["read as latin1", "base64"],
  ["read as latin1", "JSON of escapes alone", "percent-encoded", "base64"],
];

describe("maskerOf", () => {
  test.each([
    ["as it is", secret],
    ...names.map((name) => [name, encoded(secret, name)]),
    ...nested.map((chain) => [chain.join(", in "), encoded(secret, ...chain)]),
    [
      "escapes of JavaScript",
      Buffer.from("other-word")
        .toString("hex")
        .replaceAll(/../g, String.raw`\x$&`),
    ],
    ["latin1 in base64", Buffer.from("user:other-word").toString("base64")],
    ["the password alone", "other-word"],
    ["the credentials of RFC 7617", base64("user:other-word")],
    ["both after each other", `${secret}other-word`],
  ])("finds a secret: %s", (_name, text) => {
    expect(mask({ list: [`before "${text}" after`], number: 5 })).toEqual({
      list: [`before "${masking.text}" after`],
      number: 5,
    });
  });

  test.each([
    ["btoa() of latin1", Buffer.from("Straße 99", "latin1").toString("base64")],
    ["UTF-16 in base64", Buffer.from("Straße 99", "utf16le").toString("base64")],
  ])("finds a secret: %s", (_name, text) => {
    expect(masking.of({ texts: ["Straße 99"] })(`key=${text};`)).toBe(`key=${masking.text};`);
  });

  test.each([0, 1, 2, 3])("finds a secret in the base64 of something longer, %i bytes on", (length) => {
    const text = base64(`${"x".repeat(length)}${secret}${"y".repeat(7)}`);
    const shown = mask(text);
    expect(shown).toContain(masking.text);
    // What is left beside it is less than a character of the secret on either side.
    for (const part of shown.split(masking.text)) {
      expect(Buffer.from(part, "base64").toString("latin1")).not.toMatch(/[pa]ss|92/);
    }
  });

  test("finds a secret that follows a word without a space, and one in the name of a member", () => {
    expect(mask(`Basic${base64(secret)}`)).toBe(`Basic${masking.text}`);
    expect(mask({ [secret]: 1, __proto__: 2 })).toEqual({ [masking.text]: 1 });
  });

  test("leaves what is no secret, and takes a text of three characters for none", () => {
    const value = {
      a: "word",
      b: [null, true, "user"],
      c: "\\u0041 %41 4141414141 QUFBQUFB \\ud800 %zz \\u12",
    };
    expect(mask(value)).toEqual(value);
    expect(masking.of({ texts: ["abc"] })("abc abc")).toBe("abc abc");
    expect(masking.of({})(value)).toEqual(value);
  });

  test("finds the longest of secrets that are parts of each other, and each of many", () => {
    const texts = ["abcd", "abcdef", "cdefgh", ...Array.from({ length: 500 }, (_, at) => `secret-${at};`)];
    const many = masking.of({ texts });
    expect(many("-abcdefgh- -abcd- -abcdef- -bcdef-")).toBe(
      `-${masking.text}- -${masking.text}- -${masking.text}- -bcdef-`,
    );
    expect(many(texts.slice(3).join(" "))).toBe(Array.from({ length: 500 }, () => masking.text).join(" "));
  });

  test("masks a text as a whole in which more is nested than it looks at", () => {
    // Of any two of these a third may be made; which ones stand together must not repeat.
    let state = 1;
    const hostile = Array.from({ length: 40_000 }, () => {
      state = (state * 1_103_515_245 + 12_345) % 2_147_483_648;
      return String.raw`%25\u0041+ab`.charAt((state >> 8) % 13);
    }).join("");
    expect(mask(hostile)).toBe(masking.text);
  });
});
