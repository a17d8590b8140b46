import { isDeepStrictEqual } from "node:util";
import { describe, expect, test } from "@jest/globals";
import { parseByteSequenceDictionary } from "@countersign/http-message-signatures/door";
import {
  parseSignatureInput,
  readSignature,
  type SignatureInput,
} from "@countersign/http-message-signatures";
import type { BareItem, Parameters } from "../dist/field-scanner.js";
import * as fc from "fast-check";
import { serializeSignatureParams } from "../src/signature-base.ts";
import { profile, sampleHeaders, verdictOf } from "./hand-signer.ts";
import { good } from "./hostile-rows.ts";
import { fuzzRuns } from "@countersign/test-support/runs/fuzz-runs.ts";
import type { ComponentIdentifier } from "../dist/signature-base.js";

// Characters that mean something in a structured field, and a few that never belong into one.
const alphabet = `"\\();=,:?* \t-.019abzAZ+/@%_'\u0000\n\u007f\u00e9`.split("");
const hostileText = fc.array(fc.constantFrom(...alphabet), { maxLength: 60 }).map((parts) => parts.join(""));

const edited = (text: string): fc.Arbitrary<string> =>
  fc
    .array(
      fc.tuple(
        fc.nat(text.length),
        fc.nat(3),
        hostileText.map((more) => more.slice(0, 4)),
      ),
      {
        minLength: 1,
        maxLength: 4,
      },
    )
    .map((edits) =>
      edits.reduce((now, [at, drop, put]) => now.slice(0, at) + put + now.slice(at + drop), text),
    );

describe("any text gives a value or a MessageSignatureError", () => {
  const text = fc.oneof(
    hostileText,
    fc.string({ unit: "binary", maxLength: 60 }),
    edited(good.input),
    edited(good.signature),
  );

  test("in the parsers", () => {
    fc.assert(
      fc.property(text, (value) => {
        verdictOf(() => parseSignatureInput(value));
        verdictOf(() => parseByteSequenceDictionary(value));
      }),
      fuzzRuns(3000),
    );
  });

  test("in a whole message", () => {
    fc.assert(
      fc.property(
        fc.oneof(edited(good.input), hostileText),
        fc.oneof(fc.constant(good.signature), edited(good.signature)),
        fc.oneof(fc.constant("/api/v1/transaction"), fc.string({ unit: "binary", maxLength: 20 })),
        fc.oneof(fc.constant("POST"), fc.string({ maxLength: 5 })),
        fc.array(fc.string({ unit: "binary", maxLength: 10 }), { maxLength: 5 }),
        (input, signature, target, method, more) => {
          const rawHeaders = [...sampleHeaders, "Signature-Input", input, "Signature", signature, ...more];
          verdictOf(() => readSignature({ method, target, rawHeaders }, profile));
        },
      ),
      fuzzRuns(2000),
    );
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
  ])("also when it is a million %s", (_title, unit) => {
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
});

// Few keys and values, so that two independent draws often agree in part and sometimes in whole.
const nastyText = fc.oneof(
  fc.constantFrom("", "a", '"', "\\", '\\"', '" "', '"a"', '";a', ") ", '");a=1', "a;b", "?1", "1"),
  fc.string({
    unit: fc.integer({ min: 0x20, max: 0x7e }).map((code) => String.fromCharCode(code)),
    maxLength: 8,
  }),
);
const decimal = fc
  .tuple(fc.boolean(), fc.integer({ min: 0, max: 999 }), fc.integer({ min: 0, max: 999 }))
  .map(([minus, whole, thousandths]) => {
    const digits = `${whole}.${String(thousandths)
      .padStart(3, "0")
      .replace(/0{1,2}$/, "")}`;
    return minus && digits !== "0.0" ? `-${digits}` : digits;
  });
const bareItem: fc.Arbitrary<BareItem> = fc.oneof(
  fc.integer({ min: -3, max: 3 }).map((value) => ({ type: "integer", value: value + 0 }) as const),
  fc.maxSafeInteger().map((value) => ({ type: "integer", value: value % 1e15 || 0 }) as const),
  decimal.map((text) => ({ type: "decimal", text }) as const),
  nastyText.map((value) => ({ type: "string", value }) as const),
  fc.constantFrom("a", "T1", "*", "a/b:c").map((text) => ({ type: "token", text }) as const),
  fc
    .uint8Array({ maxLength: 5 })
    .map((bytes) => ({ type: "binary", base64: Buffer.from(bytes).toString("base64") }) as const),
  fc.boolean().map((value) => ({ type: "boolean", value }) as const),
);
const parameters = (maxLength: number): fc.Arbitrary<Parameters> =>
  fc
    .uniqueArray(
      fc.tuple(
        fc.constantFrom("a", "b", "*", "created", "nonce", "a.b", "x-1", "_".padStart(2, "z")),
        bareItem,
      ),
      {
        selector: ([key]) => key,
        maxLength,
      },
    )
    .map((entries) => new Map(entries));
const component: fc.Arbitrary<ComponentIdentifier> = fc.record({
  name: nastyText,
  parameters: parameters(2),
});
const signatureInput: fc.Arbitrary<SignatureInput> = fc.record({
  components: fc.array(component, { maxLength: 4 }),
  parameters: parameters(8),
});

/** Maps as lists: the order of parameters is part of what is signed. */
function listed({ components, parameters: map }: SignatureInput): unknown {
  return [components.map(({ name, parameters: own }) => [name, [...own]]), [...map]];
}

function textOf({ components, parameters: map }: SignatureInput): string {
  return serializeSignatureParams(components, map);
}

describe("two different sets of components and parameters never give one text", () => {
  test("because what is written is read back as the same structure", () => {
    fc.assert(
      fc.property(signatureInput, (input) => {
        const read = parseSignatureInput(`x=${textOf(input)}`);
        expect([...read.keys()]).toEqual(["x"]);
        expect([...read.values()].map(listed)).toEqual([listed(input)]);
      }),
      fuzzRuns(2000),
    );
  });

  test("and two of them are equal exactly when their texts are", () => {
    const small: fc.Arbitrary<SignatureInput> = fc.record({
      components: fc.array(
        fc.record({ name: fc.constantFrom('a" "a', "a", '"', "\\"), parameters: parameters(1) }),
        { maxLength: 2 },
      ),
      parameters: parameters(1),
    });
    fc.assert(
      fc.property(fc.oneof(small, signatureInput), fc.oneof(small, signatureInput), (one, other) => {
        expect(textOf(one) === textOf(other)).toBe(isDeepStrictEqual(listed(one), listed(other)));
      }),
      fuzzRuns(3000),
    );
  });

  test("and whatever the parser takes, it takes for its canonical form", () => {
    fc.assert(
      fc.property(edited(good.input), (text) => {
        if (verdictOf(() => parseSignatureInput(text)) !== "accepted") return;
        for (const input of parseSignatureInput(text).values()) {
          const again = parseSignatureInput(`x=${textOf(input)}`).get("x");
          expect(again === undefined ? undefined : listed(again)).toEqual(listed(input));
        }
      }),
      fuzzRuns(3000),
    );
  });
});
