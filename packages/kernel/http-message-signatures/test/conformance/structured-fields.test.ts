import { join } from "node:path";
import { describe, expect, test } from "@jest/globals";
import { parseByteSequenceDictionary } from "@countersign/http-message-signatures/internal";
import { parseSignatureInput } from "@countersign/http-message-signatures";
import { assertSerializable } from "../../src/structured-field.ts";
import { verdictOf } from "../hand-signer.ts";
import {
  canonicalText,
  expectedMembers,
  inSuiteForm,
  parametersOf,
  parseCase,
  readCases,
  stricterReason,
  type Case,
} from "./structured-field-suite.ts";
import { suiteFolder } from "./vectors.ts";

// RFC 8941, sections 3.1.2 and 3.3.3: enough to notice when the suite is not there and something broke.
const examples: readonly Case[] = [
  {
    name: "string",
    raw: [String.raw` "a\"b" `],
    header_type: "item",
    expected: ['a"b', []],
    canonical: [String.raw`"a\"b"`],
  },
  { name: "date", raw: ["@1"], header_type: "item", expected: [{ __type: "date", value: 1 }, []] },
  { name: "two items", raw: ["1 2"], header_type: "item", must_fail: true },
];

const folder = suiteFolder("structured-field-tests");
const cases = folder === undefined ? examples : readCases(folder);
const named = (wanted: (each: Case) => boolean): [string, Case][] =>
  cases.filter(wanted).map((each) => [each.name, each]);

describe("the structured field suite", () => {
  test.each(named((each) => each.must_fail === true))("refuses %s", (_name, each) => {
    expect(verdictOf(() => parseCase(each))).toMatch(/^field-(?:invalid|limit)$/);
  });

  test.each(named((each) => each.must_fail !== true && stricterReason(each) === undefined))(
    "has the value and the canonical form of %s",
    (_name, each) => {
      const parsed = parseCase(each);
      expect(inSuiteForm(parsed)).toEqual(each.expected);
      expect(canonicalText(parsed)).toBe((each.canonical ?? each.raw).join(", "));
    },
  );

  test.each(named((each) => each.must_fail !== true && stricterReason(each) !== undefined))(
    "refuses %s, stricter than the suite",
    (_name, each) => {
      expect(verdictOf(() => parseCase(each))).toMatch(/^field-(?:invalid|limit)$/);
    },
  );

  test("is stricter for these reasons only, and as often as counted", () => {
    const counts: Record<string, number> = {};
    for (const each of cases) {
      const kind = each.must_fail === true ? "must fail" : (stricterReason(each) ?? "taken");
      counts[kind] = (counts[kind] ?? 0) + 1;
    }
    expect(counts).toEqual(folder === undefined ? countsOfExamples : countsOfSuite);
  });
});

// The rest of these rounds decimals, which are kept as text here: nothing is rounded, and nothing of a field has to be.
test("what has no serialisation by the suite is refused", () => {
  const unserialisable = folder === undefined ? [] : readCases(join(folder, "serialisation-tests"));
  for (const each of unserialisable.filter(({ must_fail: mustFail }) => mustFail === true))
    expect([each.name, verdictOf(() => assertSerializable(parametersOf(each)))]).toEqual([
      each.name,
      "field-invalid",
    ]);
});

describe("the two parsers of the package on the suite's dictionaries", () => {
  const dictionaries = cases.filter((each) => each.header_type === "dictionary");
  const takenBy = (parse: (text: string) => unknown): string[] =>
    dictionaries
      .filter((each) => verdictOf(() => parse(each.raw.join(", "))) === "accepted")
      .map(({ name }) => name);
  // Fields of signatures have fewer members, and each has a value.
  const isFine = (each: Case): boolean =>
    each.must_fail !== true &&
    stricterReason(each) === undefined &&
    expectedMembers(each).length <= 4 &&
    expectedMembers(each).every(([, [value]]) => !Array.isArray(value) || value.length <= 16);

  test("Signature-Input takes the dictionaries of inner lists of strings, and no other", () => {
    const fitting = dictionaries.filter(
      (each) =>
        isFine(each) &&
        expectedMembers(each).every(
          ([, [value]]) =>
            Array.isArray(value) && (value as [unknown][]).every(([item]) => typeof item === "string"),
        ),
    );
    expect(takenBy(parseSignatureInput)).toEqual(fitting.map(({ name }) => name));
  });

  test("Signature takes the dictionaries of byte sequences without parameters, and no other", () => {
    const fitting = dictionaries.filter(
      (each) =>
        isFine(each) &&
        expectedMembers(each).every(
          ([, [value, parameters]]) =>
            typeof value === "object" &&
            "__type" in value &&
            value.__type === "binary" &&
            parameters.length === 0,
        ),
    );
    expect(takenBy(parseByteSequenceDictionary)).toEqual(fitting.map(({ name }) => name));
  });
});

const countsOfExamples = { "must fail": 1, taken: 1, "Date or Display String": 1 };
const countsOfSuite = {
  "must fail": 864,
  taken: 696,
  "Date or Display String": 17,
  "a repeated key": 4,
  "a list or dictionary without members": 2,
  "bytes that are not canonical base64": 2,
  "over a limit": 6,
};
