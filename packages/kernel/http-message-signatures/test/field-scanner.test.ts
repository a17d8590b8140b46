import { describe, expect, test } from "@jest/globals";
import { parseByteSequenceDictionary } from "@countersign/http-message-signatures/door";
import { parseSignatureInput, readSignature } from "@countersign/http-message-signatures";
import { profile, verdictOf } from "./hand-signer.ts";

// What the grammar takes and refuses is in conformance/structured-fields.test.ts and test/vectors/structured-fields.json.
describe("parseSignatureInput", () => {
  test("keeps members, components and parameters in order", () => {
    const inputs = parseSignatureInput(' b=("x";p=1 "@y");q;r="s" ,\ta=( )\t');
    expect([...inputs.keys()]).toEqual(["b", "a"]);
    expect(inputs.get("a")).toEqual({ components: [], parameters: new Map() });
    expect(inputs.get("b")).toEqual({
      components: [
        { name: "x", parameters: new Map([["p", { type: "integer", value: 1 }]]) },
        { name: "@y", parameters: new Map() },
      ],
      parameters: new Map([
        ["q", { type: "boolean", value: true }],
        ["r", { type: "string", value: "s" }],
      ]),
    });
  });
});

describe("parseByteSequenceDictionary", () => {
  test("names the field in the message", () => {
    expect(() => parseByteSequenceDictionary("A", "Content-Digest")).toThrow(/^Content-Digest has a key/);
    expect(() => parseByteSequenceDictionary("A")).toThrow(/^the field has a key/);
  });
});

test.each<[string, string]>([
  ["spaces", " "],
  ["tabs", "\t"],
  ["quotes", '"'],
  ["backslashes", "\\"],
  ["opening brackets", "("],
  ["colons", ":"],
  ["semicolons", ";"],
  ["digits", "1"],
  ["letters", "a"],
  ["commas", ","],
  ["key and value pairs", "a=1,"],
  ["parameters", ";a"],
  ["components", '"a" '],
])("a field of a million %s is refused", (_title, unit) => {
  const long = unit.repeat(1_000_000 / unit.length);
  for (const prefix of ["", "a=", "a=(", "a=()", 'a=("', "a=:", 'a=();b="', "a=();b="]) {
    for (const value of [prefix + long, (prefix + long).slice(0, 4096)]) {
      const message = {
        method: "POST",
        target: "/",
        rawHeaders: ["Signature-Input", value, "Signature", value],
      };
      expect(verdictOf(() => readSignature(message, profile))).toMatch(/^field-(?:invalid|limit)$/);
    }
  }
});
