// Components with parameters: what differs in meaning never has one base, and what differs in its spelling alone always has one. The
// meaning is a model that the tests write down in several spellings; nothing of the package reads it.
import { expect, test } from "@jest/globals";
import {
  createSignatureBase,
  parseSignatureInput,
  type RequestMessage,
} from "@countersign/http-message-signatures";
import type { Message } from "../dist/message.js";
import { componentIdentifiers } from "@countersign/http-message-signatures/internal";
import * as fc from "fast-check";
import { fuzzRuns } from "@countersign/test-support/runs/share.ts";
import type { FieldTypes } from "../dist/message.js";

const fieldTypes: FieldTypes = { "x-dict": "dictionary", "x-list": "list", "x-item": "item" };
const baseOf = (message: Message, identifiers: readonly string[]): string => {
  const components = identifiers.map(componentIdentifiers.parse);
  return createSignatureBase(message, { components, parameters: new Map() }, fieldTypes);
};

/** Writes in one of several ways: the numbers say which, one after the other. */
type Pen = () => number;
const spelling = fc.array(fc.nat(5), { minLength: 1, maxLength: 12 });
function penOf(choices: readonly number[]): Pen {
  let position = 0;
  return () => choices[position++ % choices.length] ?? 0;
}
const spaces = (pen: Pen): string => " ".repeat(pen() % 3);

// A structured field (RFC 8941) as a model: what a member is, in no spelling.
const text = fc.string({ unit: fc.constantFrom("a", '"', "\\", ",", ";", " ", ":", "("), maxLength: 4 });
const bare = fc.oneof(
  fc.integer({ min: -2, max: 2 }).map(String),
  text.map((value) => `"${value.replaceAll(/["\\]/g, "\\$&")}"`),
  fc.constantFrom("1.5", "-0.5", "tok", "*", ":AA==:", "?0", "?1"),
);
const own = fc.uniqueArray(fc.tuple(fc.constantFrom("p", "q"), bare), {
  selector: ([name]) => name,
  maxLength: 2,
});
type Own = readonly (readonly [string, string])[];
type Item = readonly [value: string, own: Own];
type Member = { readonly value: string | readonly Item[]; readonly own: Own };
const item = fc.tuple(bare, own);
const member: fc.Arbitrary<Member> = fc.record({
  value: fc.oneof(bare, fc.array(item, { maxLength: 2 })),
  own,
});
const dictionary = fc.uniqueArray(fc.tuple(fc.constantFrom("a", "b", "c"), member), {
  selector: ([key]) => key,
  minLength: 1,
  maxLength: 3,
});
type Dictionary = readonly (readonly [string, Member])[];

const ownText = (parameters: Own, pen: Pen): string =>
  parameters
    .map(([name, value]) => `;${spaces(pen)}${name}${value === "?1" && pen() % 2 === 0 ? "" : `=${value}`}`)
    .join("");
function memberText({ value, own: parameters }: Member, pen: Pen): string {
  if (typeof value === "string") return value + ownText(parameters, pen);
  const items = value.map(([inner, innerOwn]) => inner + ownText(innerOwn, pen));
  return `(${spaces(pen)}${items.join(" " + spaces(pen))}${spaces(pen)})${ownText(parameters, pen)}`;
}
function dictionaryLines(members: Dictionary, pen: Pen): readonly string[] {
  const texts = members.map(([key, each]) =>
    each.value === "?1" && pen() % 2 === 0 ? key + ownText(each.own, pen) : `${key}=${memberText(each, pen)}`,
  );
  // Of two lines the field is the same as of one.
  const cut = pen() % (texts.length + 1);
  const parts = [texts.slice(0, cut), texts.slice(cut)].filter((part) => part.length > 0);
  return parts.map((part) => spaces(pen) + part.join(`${spaces(pen)},${spaces(pen)}`) + spaces(pen));
}
const withLines = (name: string, lines: readonly string[]): RequestMessage => ({
  method: "GET",
  target: "/",
  rawHeaders: lines.flatMap((line) => [name, line]),
});

test("of dictionaries a base by sf and by key tells members and their parameters, and not their spelling", () => {
  fc.assert(
    fc.property(dictionary, dictionary, spelling, spelling, (one, other, first, second) => {
      const message = (members: Dictionary, choices: readonly number[]): RequestMessage =>
        withLines("X-Dict", dictionaryLines(members, penOf(choices)));
      const strict = (members: Dictionary, choices: readonly number[]): string =>
        baseOf(message(members, choices), ['"x-dict";sf']);
      expect(strict(one, first)).toBe(strict(one, second));
      expect(strict(one, first) === strict(other, second)).toBe(
        JSON.stringify(one) === JSON.stringify(other),
      );
      for (const [key, each] of one) {
        const ofKey = (members: Dictionary, choices: readonly number[]): string =>
          baseOf(message(members, choices), [`"x-dict";key="${key}"`]);
        expect(ofKey(one, first)).toBe(ofKey(one, second));
        const same = other.find(([name]) => name === key)?.[1];
        if (same === undefined) expect(() => ofKey(other, second)).toThrow("not in its dictionary");
        else
          expect(ofKey(one, first) === ofKey(other, second)).toBe(
            JSON.stringify(each) === JSON.stringify(same),
          );
      }
    }),
    fuzzRuns(1000),
  );
});

test("of lists and items a base by sf tells what they hold, and not their spelling", () => {
  fc.assert(
    fc.property(
      fc.array(member, { minLength: 1, maxLength: 3 }),
      fc.array(member, { minLength: 1, maxLength: 3 }),
      item,
      item,
      spelling,
      spelling,
      (one, other, single, another, first, second) => {
        const list = (members: readonly Member[], choices: readonly number[]): string => {
          const pen = penOf(choices);
          const lines = [members.map((each) => memberText(each, pen)).join(`${spaces(pen)},${spaces(pen)}`)];
          return baseOf(withLines("X-List", lines), ['"x-list";sf']);
        };
        expect(list(one, first)).toBe(list(one, second));
        expect(list(one, first) === list(other, second)).toBe(JSON.stringify(one) === JSON.stringify(other));
        const ofItem = ([value, parameters]: Item, choices: readonly number[]): string =>
          baseOf(withLines("X-Item", [value + ownText(parameters, penOf(choices))]), ['"x-item";sf']);
        expect(ofItem(single, first)).toBe(ofItem(single, second));
        expect(ofItem(single, first) === ofItem(another, second)).toBe(
          JSON.stringify(single) === JSON.stringify(another),
        );
      },
    ),
    fuzzRuns(1000),
  );
});

// Bytes as characters, with those that mean something where lines are joined.
const line = fc.string({
  unit: fc.constantFrom("a", ",", " ", "\t", ":", '"', "\u00e9", "\u0001"),
  maxLength: 4,
});
const fieldLines = fc.array(line, { minLength: 1, maxLength: 3 });
const trimmed = (lines: readonly string[]): string =>
  JSON.stringify(lines.map((each) => each.replaceAll(/^[ \t]+|[ \t]+$/g, "")));

test("of wrapped fields a base tells each line, in headers and in trailers", () => {
  fc.assert(
    fc.property(fieldLines, fieldLines, fieldLines, (one, other, elsewhere) => {
      const wrapped = (lines: readonly string[]): string => baseOf(withLines("X", lines), ['"x";bs']);
      expect(wrapped(one) === wrapped(other)).toBe(trimmed(one) === trimmed(other));
      const trailing = (lines: readonly string[]): string => {
        const message = { ...withLines("X", elsewhere), rawTrailers: lines.flatMap((each) => ["X", each]) };
        return baseOf(message, ['"x";bs;tr']);
      };
      expect(trailing(one) === trailing(other)).toBe(trimmed(one) === trimmed(other));
      expect(trailing(one)).not.toBe(wrapped(one));
    }),
    fuzzRuns(1000),
  );
});

// A query as a model: names and values as text, to be written in escapes or not.
const word = fc.string({
  unit: fc.constantFrom("a", "=", "&", "+", " ", "%", "\u00e4", "\n", '"'),
  maxLength: 3,
});
type Pairs = readonly (readonly [string, string])[];
const anyPairs = fc.array(fc.tuple(fc.oneof(fc.constant("id"), word), word), { minLength: 1, maxLength: 4 });
// No word is "id": often enough there is one value to compare.
const onePair = fc.tuple(word, fc.array(fc.tuple(word, word), { maxLength: 2 }));
const pairs: fc.Arbitrary<Pairs> = fc.oneof(
  anyPairs,
  onePair.map(([value, others]): Pairs => [["id", value], ...others]),
);
function queryOf(list: Pairs, pen: Pen): string {
  const write = (value: string): string =>
    [...new TextEncoder().encode(value)]
      .map((byte) => {
        const character = String.fromCharCode(byte);
        if (/[a-z]/.test(character) && pen() % 2 === 0) return character;
        if (character === " " && pen() % 2 === 0) return "+";
        const escape = `%${byte.toString(16).padStart(2, "0")}`;
        return pen() % 2 === 0 ? escape : escape.toUpperCase();
      })
      .join("");
  return `?${list.map(([name, value]) => (value === "" && name !== "" && pen() % 2 === 0 ? write(name) : `${write(name)}=${write(value)}`)).join("&")}`;
}

test("of query parameters a base tells the value, and neither its escapes nor the other parameters", () => {
  let told = 0;
  fc.assert(
    fc.property(pairs, pairs, spelling, spelling, (one, other, first, second) => {
      const valuesOf = (list: Pairs): readonly string[] =>
        list.filter(([name]) => name === "id").map(([, value]) => value);
      const base = (list: Pairs, choices: readonly number[]): string =>
        baseOf({ method: "GET", target: `/${queryOf(list, penOf(choices))}`, rawHeaders: [] }, [
          '"@query-param";name="id"',
        ]);
      const [ofOne, ofOther] = [valuesOf(one), valuesOf(other)];
      // None, and more than one, is no value.
      if (ofOne.length !== 1) expect(() => base(one, first)).toThrow("covered query parameter");
      else expect(base(one, first)).toBe(base(one, second));
      if (ofOne.length !== 1 || ofOther.length !== 1) return;
      told++;
      expect(base(one, first) === base(other, second)).toBe(ofOne[0] === ofOther[0]);
    }),
    fuzzRuns(1000),
  );
  expect(told).toBeGreaterThan(20);
});

const identifiers = [
  "@status",
  "x-dict",
  '"x-dict";sf',
  '"x-dict";key="a"',
  '"x-dict";bs',
  '"x-dict";tr',
  '"x-dict";tr;sf',
  '"x-dict";bs;tr',
  '"x-dict";req',
  '"x-dict";sf;req',
  '"x-dict";req;key="a"',
  '"x-dict";req;bs',
  '"x-dict";req;tr',
  '"@method";req',
  '"@path";req',
  '"@query";req',
  '"@query-param";name="id";req',
  '"@query-param";req;name="a"',
];
const few = fc.uniqueArray(fc.constantFrom(...identifiers), { minLength: 1, maxLength: 4 });
const member1 = fc.constantFrom("1", "2");
const exchange = fc.record({
  status: fc.constantFrom(200, 201),
  header: member1,
  trailer: member1,
  requestHeader: member1,
  requestTrailer: member1,
  method: fc.constantFrom("GET", "POST"),
  path: fc.constantFrom("/a", "/b"),
  id: member1,
  a: member1,
});
type Exchange = typeof exchange extends fc.Arbitrary<infer Of> ? Of : never;

/** What a component is of, by hand. */
const source: Readonly<Record<string, keyof Exchange | readonly (keyof Exchange)[]>> = {
  "@status": "status",
  '"@method";req': "method",
  '"@path";req': "path",
  '"@query";req': ["id", "a"],
  '"@query-param";name="id";req': "id",
  '"@query-param";req;name="a"': "a",
};
const sourceOf = (identifier: string): readonly (keyof Exchange)[] => {
  const part = identifier.includes(";req") ? "request" : "";
  const field = identifier.includes(";tr") ? "trailer" : "header";
  const ofField = (
    part === "" ? field : part + field.charAt(0).toUpperCase() + field.slice(1)
  ) as keyof Exchange;
  return [source[identifier] ?? ofField].flat();
};

function responseOf(of: Exchange): Message {
  const request: RequestMessage = {
    method: of.method,
    target: `${of.path}?id=${of.id}&a=${of.a}`,
    rawHeaders: ["X-Dict", `a=${of.requestHeader}`],
    rawTrailers: ["X-Dict", `a=${of.requestTrailer}`],
  };
  return {
    status: of.status,
    rawHeaders: ["X-Dict", `a=${of.header}`],
    rawTrailers: ["X-Dict", `a=${of.trailer}`],
    request,
  };
}

test("of responses and their requests a base tells each part by the component that covers it, and no other part", () => {
  const covered = new Set<string>();
  fc.assert(
    fc.property(exchange, exchange, few, few, (one, other, some, more) => {
      for (const identifier of some) covered.add(identifier);
      const isSame = some.flatMap(sourceOf).every((part) => one[part] === other[part]);
      const base = baseOf(responseOf(one), some);
      expect(base === baseOf(responseOf(other), some)).toBe(isSame);
      expect(base === baseOf(responseOf(one), more)).toBe(JSON.stringify(some) === JSON.stringify(more));
      const read = parseSignatureInput(
        `x=${base.slice(base.lastIndexOf("\n") + '\n"@signature-params": '.length)}`,
      );
      expect(read.get("x")?.components).toEqual(some.map(componentIdentifiers.parse));
    }),
    fuzzRuns(1000),
  );
  expect(covered.size).toBe(identifiers.length);
});
