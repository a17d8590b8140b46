import { describe, expect, test } from "@jest/globals";
import type { BareItem, Parameters } from "../../dist/field-scanner.js";
import { assertSerializable } from "../../src/structured-field.ts";
import { verdictOf } from "../hand-signer.ts";
import { readCases, type Case } from "./structured-field-suite.ts";
import { suiteFolder } from "./vectors.ts";

// RFC 8941 section 4.1: enough to notice when the suite is not there and something broke.
const examples: readonly Case[] = [
  { name: "string", raw: [], header_type: "item", expected: ["a\n", []], must_fail: true },
  {
    name: "token",
    raw: [],
    header_type: "item",
    expected: [{ __type: "token", value: "a b" }, []],
    must_fail: true,
  },
  { name: "key", raw: [], header_type: "dictionary", expected: [["A", [1, []]]], must_fail: true },
];

const folder = suiteFolder("structured-field-tests/serialisation-tests");
const cases = folder === undefined ? examples : readCases(folder);

/** All keys and bare items of a case: a signature base has no others than those of parameters. */
function parametersOf(value: unknown): Parameters {
  const found = new Map<string, BareItem>();
  const visit = (part: unknown, at: string): void => {
    if (!Array.isArray(part)) {
      found.set(at, bareItem(part));
      return;
    }
    const [first] = part as unknown[];
    if (part.length === 2 && typeof first === "string" && !isParams(part[1])) visit(part[1], first);
    else part.forEach((each) => visit(each, at));
  };
  visit(value, "v");
  return found;
}

// An item is a pair as well: of a bare item and its parameters.
const isParams = (value: unknown): boolean =>
  Array.isArray(value) && value.every((each) => Array.isArray(each) && typeof each[0] === "string");

function bareItem(value: unknown): BareItem {
  if (typeof value === "boolean") return { type: "boolean", value };
  if (typeof value === "string") return { type: "string", value };
  if (typeof value === "object") return { type: "token", text: String(Object(value).value) };
  return Number.isInteger(value)
    ? { type: "integer", value: Number(value) }
    : { type: "decimal", text: JSON.stringify(value) };
}

// The rest of the suite rounds decimals, which are kept as text here: nothing is rounded, and nothing of a field has to be.
describe("what has no serialisation by the suite is refused", () => {
  test.each(cases.filter((each) => each.must_fail === true).map((each) => [each.name, each]))(
    "%s",
    (_name, each) => {
      expect(verdictOf(() => assertSerializable(parametersOf((each as Case).expected)))).toBe(
        "field-invalid",
      );
    },
  );
});
