import { expect, test } from "@jest/globals";
import {
  createSignatureBase,
  parseSignatureInput,
  type SignatureInput,
} from "@countersign/http-message-signatures";
import type { Message } from "../dist/message.js";
import type { BareItem, Parameters } from "../dist/field-scanner.js";
import * as fc from "fast-check";
import { MessageValues } from "../src/components.ts";
import { fuzzRuns } from "@countersign/test-support/runs/share.ts";
import { verdictOf } from "./hand-signer.ts";

// Few characters, and those that mean something in a base, so that two that differ have a chance to meet.
const hostile = fc.string({ unit: fc.constantFrom("a", '"', "\\", ":", " ", ";", "(", ")", ",", "=", "1") });
const outside = fc.constantFrom("\n", "\u00e9", "a\r\nb", '"a": 1\n"b"');
const text = fc.oneof({ weight: 29, arbitrary: hostile }, outside);

const bare: fc.Arbitrary<BareItem> = fc.oneof(
  fc.integer({ min: -3, max: 3 }).map((value): BareItem => ({ type: "integer", value })),
  { weight: 3, arbitrary: text.map((value): BareItem => ({ type: "string", value })) },
  fc.constantFrom("1.0", "1.5", "-0.5", "1.50").map((value): BareItem => ({ type: "decimal", text: value })),
  fc.constantFrom("a", "b", "*", "1", "a b").map((value): BareItem => ({ type: "token", text: value })),
  fc.constantFrom("", "AA==", "YQ==", "AA=").map((base64): BareItem => ({ type: "binary", base64 })),
  fc.boolean().map((value): BareItem => ({ type: "boolean", value })),
);
const sound = fc.constantFrom("a", "b", "created", "nonce", "*");
const key = fc.oneof({ weight: 29, arbitrary: sound }, fc.constantFrom("A", "a;b", ""));
const parameters = fc.array(fc.tuple(key, bare), { maxLength: 3 }).map((list): Parameters => new Map(list));

const flag: BareItem = { type: "boolean", value: true };
const none: Parameters = new Map();
const flags = (...names: string[]): Parameters => new Map(names.map((name) => [name, flag]));
const ofText = fc
  .tuple(fc.constantFrom("key", "name"), hostile)
  .map(([name, value]): Parameters => new Map([[name, { type: "string", value }]]));
const names = fc.constantFrom(
  "x",
  "y",
  "priority",
  "@method",
  "@path",
  "@query",
  "@query-param",
  "@status",
  "X",
  "a: b",
);
const component = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({
      name: fc.constantFrom("x", "y"),
      parameters: fc.constantFrom(none, flags("bs"), flags("tr")),
    }),
  },
  {
    weight: 3,
    arbitrary: fc.record({
      name: fc.constantFrom("@method", "@query", "x", "y"),
      parameters: fc.constantFrom(none, flags("req"), flags("req", "bs"), flags("bs", "req")),
    }),
  },
  fc.record({ name: names, parameters: fc.oneof(fc.constant(none), ofText, parameters) }),
);
const input: fc.Arbitrary<SignatureInput> = fc.record({
  components: fc.array(component, { minLength: 1, maxLength: 3 }),
  parameters,
});

const further = fc.array(fc.tuple(fc.constantFrom("x", "X", "y", "priority"), text), { maxLength: 2 });
const lines = fc.tuple(hostile, hostile, further).map(([x, y, more]) => [["x", x], ["Y", y], ...more]);
const request = fc.record({
  method: fc.constantFrom("GET", "POST", "get"),
  target: fc
    .string({ unit: fc.constantFrom("/", "a", "?", "&", "=", "%41", "+"), maxLength: 6 })
    .map((path) => `/a${path}`),
  rawHeaders: lines.map((list) => list.flat()),
  rawTrailers: fc.option(
    lines.map((list) => list.flat()),
    { nil: undefined },
  ),
});
const response = fc.record({
  status: fc.integer({ min: 99, max: 120 }),
  rawHeaders: lines.map((list) => list.flat()),
  request: fc.option(request, { nil: undefined }),
});
const message: fc.Arbitrary<Message> = fc.oneof(request, response);

/** What a base is of, read from the base alone. */
function readBack(base: string): { readonly values: readonly string[]; readonly input: SignatureInput } {
  const all = base.split("\n");
  const last = all.pop() ?? "";
  const read = parseSignatureInput(`x=${last.slice('"@signature-params": '.length)}`).get("x");
  if (read === undefined) throw new Error("no input");
  const values = all.map((line, index) => {
    const { name = "", parameters: own = new Map() } = read.components[index] ?? {};
    const identifier = createIdentifier(name, own);
    expect(line.startsWith(`${identifier}: `)).toBe(true);
    return line.slice(identifier.length + 2);
  });
  return { values, input: read };
}

function createIdentifier(name: string, own: Parameters): string {
  const parts = [...own].map(([key_, item]) => {
    if (item.type === "boolean") return `;${key_}`;
    return item.type === "string" ? `;${key_}="${item.value.replaceAll(/["\\]/g, "\\$&")}"` : "";
  });
  return `"${name}"${parts.join("")}`;
}

test("a base tells its parameters and its values: two that differ in either never have one base", () => {
  let accepted = 0;
  fc.assert(
    fc.property(message, input, (of, from) => {
      let base: string;
      try {
        base = createSignatureBase(of, from);
      } catch {
        expect(verdictOf(() => createSignatureBase(of, from))).not.toBe("accepted");
        return;
      }
      accepted++;
      const read = readBack(base);
      expect(read.input).toEqual(from);
      expect([...read.input.parameters.keys()]).toEqual([...from.parameters.keys()]);
      const values = new MessageValues(of);
      expect(read.values).toEqual(
        from.components.map(({ name, parameters: own }) => values.valueOf(name, own)),
      );
    }),
    fuzzRuns(3000),
  );
  expect(accepted).toBeGreaterThan(5);
});
