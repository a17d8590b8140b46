import type { BareItem, Parameters } from "@countersign/http-message-signatures";
import { FieldScanner } from "../../src/field-scanner.ts";
import { serializeSignatureParams } from "../../src/signature-base.ts";
import { jsonFiles, readJson } from "./vectors.ts";

/** The forms of the suite (its README): a bare item, parameters, and an item or inner list with parameters. */
type Bare = number | string | boolean | { readonly __type: string; readonly value: string | number };
type Params = readonly (readonly [string, Bare])[];
type Item = readonly [Bare, Params];
type Member = readonly [Bare | readonly Item[], Params];

export interface Case {
  readonly name: string;
  readonly raw: readonly string[];
  readonly header_type: "item" | "list" | "dictionary";
  readonly expected?: readonly unknown[];
  readonly must_fail?: boolean;
  readonly can_fail?: boolean;
  readonly canonical?: readonly string[];
}

export function readCases(folder: string): Case[] {
  return jsonFiles(folder).flatMap((file) =>
    (readJson(folder, file) as Case[]).map((each) => Object.assign(each, { name: `${file} ${each.name}` })),
  );
}

/** The members that a case expects: an item and a list of one stand for a dictionary of one member. */
export function expectedMembers({ header_type: type, expected = [] }: Case): [string, Member][] {
  if (type === "dictionary") return expected as [string, Member][];
  if (type === "item") return [["m", expected as unknown as Member]];
  return (expected as Member[]).map((member) => ["m", member]);
}

/** A case as a dictionary. The parameter behind an item refuses what an item may not end with. */
export function asDictionary({ header_type: type, raw }: Case): string {
  const text = raw.join(", ");
  if (type === "dictionary") return text;
  return type === "list" ? `m=${text}` : `m=${text.replace(/^ +| +$/g, "")};end`;
}

interface ParsedMember {
  readonly value: BareItem | readonly (readonly [BareItem, Parameters])[];
  readonly parameters: Parameters;
}

/** The package's scanner, put together to members of any type. */
export function parseCase(each: Case): ReadonlyMap<string, ParsedMember> {
  const scanner = new FieldScanner(asDictionary(each), "the field");
  const members = scanner.readDictionary(() => {
    const value =
      scanner["text"][scanner["position"]] === "("
        ? scanner.readInnerList(16, () => [scanner.readBareItem(), scanner.readParameters()] as const)
        : scanner.readBareItem();
    return { value, parameters: scanner.readParameters() };
  });
  // "foo; a,a=1" is no list, but two members of a dictionary.
  if (each.header_type !== "dictionary" && members.size > 1) throw scanner.invalid("has a second member");
  return members;
}

export function inSuiteForm(
  members: ReadonlyMap<string, ParsedMember>,
  { header_type: type }: Case,
): unknown {
  return [...members].map(([key, { value, parameters }]) => {
    const params = [...parameters].map(([name, item]) => [name, bareForm(item)]);
    if (type === "item" && params.pop()?.[0] !== "end") throw new Error("the item swallowed its end");
    return [key, ["type" in value ? bareForm(value) : value.map(itemForm), params]];
  });
}

function itemForm([item, parameters]: readonly [BareItem, Parameters]): unknown {
  return [bareForm(item), [...parameters].map(([name, value]) => [name, bareForm(value)])];
}

function bareForm(item: BareItem): Bare {
  switch (item.type) {
    case "decimal":
      return Number(item.text);
    case "token":
      return { __type: "token", value: item.text };
    case "binary":
      return { __type: "binary", value: base32(Buffer.from(item.base64, "base64")) };
    default:
      return item.value;
  }
}

/** The canonical text of a dictionary, out of the package's serialiser of parameters. */
export function canonicalText(
  members: ReadonlyMap<string, ParsedMember>,
  { header_type: type }: Case,
): string {
  const texts = [...members].map(([key, { value, parameters }]) => {
    const body = "type" in value ? itemText(value, parameters) : listText(value) + parametersText(parameters);
    const isTrue = "type" in value && value.type === "boolean" && value.value;
    if (type === "dictionary") return isTrue ? key + body.slice("?1".length) : `${key}=${body}`;
    return type === "item" ? body.slice(0, -";end".length) : body;
  });
  return texts.join(", ");
}

function listText(items: readonly (readonly [BareItem, Parameters])[]): string {
  return `(${items.map(([item, parameters]) => itemText(item, parameters)).join(" ")})`;
}

function itemText(item: BareItem, parameters: Parameters): string {
  const text = parametersText(new Map([["v", item]]));
  return (text === ";v" ? "?1" : text.slice(";v=".length)) + parametersText(parameters);
}

function parametersText(parameters: Parameters): string {
  return serializeSignatureParams([], parameters).slice("()".length);
}

function base32(bytes: Uint8Array): string {
  const bits = [...bytes].map((byte) => byte.toString(2).padStart(8, "0")).join("");
  const digits = (bits.match(/.{1,5}/g) ?? []).map((five) =>
    "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567".charAt(Number.parseInt(five.padEnd(5, "0"), 2)),
  );
  return digits.join("").padEnd(Math.ceil(digits.length / 8) * 8, "=");
}

// The two that are not named after it read "a,a=1" and "foo; a;a=1".
const repeatedKey = /duplicate|0x2c in dictionary key|0x3b in parameterised list key/;

/** Why this package refuses what the suite takes; undefined when it has to take it as well. */
export function stricterReason(each: Case): string | undefined {
  const members = expectedMembers(each);
  const text = each.raw.join(", ");
  if (/"__type":"(?:date|displaystring)"/.test(JSON.stringify(each.expected)))
    return "Date or Display String";
  if (each.header_type === "list" && members.length !== 1) return "a list of no or several members";
  if (members.length === 0) return "an empty dictionary";
  if (repeatedKey.test(each.name)) return "a repeated key";
  if (exceedsLimits(members, text)) return "over a limit";
  if (
    each.header_type === "dictionary" &&
    members.some(([, [value]]) => value === true) &&
    !text.includes("?1")
  ) {
    return "a member without a value";
  }
  if (each.can_fail === true && text.startsWith(":")) return "bytes that are not canonical base64";
  return undefined;
}

function exceedsLimits(members: readonly (readonly [string, Member])[], text: string): boolean {
  const isOver = ([value, parameters]: Member): boolean =>
    parameters.length > 8 ||
    (Array.isArray(value) && (value.length > 16 || (value as Item[]).some(([, own]) => own.length > 8)));
  return text.length > 4096 || members.length > 4 || members.some(([, member]) => isOver(member));
}
