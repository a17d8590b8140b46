import { readFileSync } from "node:fs";
import { expect, test } from "@jest/globals";
import { MessageSignatureError } from "@countersign/http-message-signatures";

const read = (path: string): string => readFileSync(new URL(path, import.meta.url), "utf8");

test("is an Error with a name and a code", () => {
  const error = new MessageSignatureError("key-unknown", "no key is known under this keyid");
  expect(error).toBeInstanceOf(Error);
  expect(error).toMatchObject({ name: "MessageSignatureError", code: "key-unknown" });
  expect(String(error)).toBe("MessageSignatureError: no key is known under this keyid");
});

test("every code stands in the README's table once, and no other does", () => {
  const declared = [...read("../src/message-signature-error.ts").matchAll(/^ {2}\| "([a-z-]+)"/gm)];
  const documented = [...read("../README.md").matchAll(/^\| `([a-z]+(?:-[a-z]+)+)` /gm)];
  const codesOf = (matches: RegExpExecArray[]): string[] => matches.map(([, code = ""]) => code);
  expect(declared.length).toBeGreaterThan(20);
  expect(documented).toHaveLength(declared.length);
  expect(new Set(codesOf(documented))).toEqual(new Set(codesOf(declared)));
});
