import type { BareItem, Parameters } from "../../dist/field-scanner.js";
import {
  parseDictionary,
  parseItem,
  parseList,
  serializeDictionary,
  serializeList,
  serializeMember,
} from "../../src/structured-field.ts";
import type { Member as Structure } from "../../dist/structured-field.js";
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

/** What the package makes of a case, by the parser of its type. */
export type Parsed = Structure | ReadonlyMap<string, Structure> | readonly Structure[];

export function parseCase({ header_type: type, raw }: Case): Parsed {
  const text = raw.join(", ");
  if (type === "dictionary") return parseDictionary(text, "the field");
  return type === "list" ? parseList(text, "the field") : parseItem(text, "the field");
}

export function inSuiteForm(parsed: Parsed): unknown {
  if (parsed instanceof Map) return [...parsed].map(([key, member]) => [key, memberForm(member)]);
  return isList(parsed) ? parsed.map(memberForm) : memberForm(parsed as Structure);
}

export function canonicalText(parsed: Parsed): string {
  if (parsed instanceof Map) return serializeDictionary(parsed);
  return isList(parsed) ? serializeList(parsed) : serializeMember(parsed as Structure);
}

function isList(parsed: Parsed): parsed is readonly Structure[] {
  return Array.isArray(parsed);
}

function memberForm(member: Structure): unknown {
  const value = "item" in member ? bareForm(member.item) : member.items.map(memberForm);
  return [value, paramsForm(member.parameters)];
}

function paramsForm(parameters: Parameters): unknown {
  return [...parameters].map(([name, value]) => [name, bareForm(value)]);
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

function base32(bytes: Uint8Array): string {
  const bits = [...bytes].map((byte) => byte.toString(2).padStart(8, "0")).join("");
  const digits = (bits.match(/.{1,5}/g) ?? []).map((five) =>
    "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567".charAt(Number.parseInt(five.padEnd(5, "0"), 2)),
  );
  return digits.join("").padEnd(Math.ceil(digits.length / 8) * 8, "=");
}

/** All keys and bare items of a case: a signature base has no others than those of parameters. */
export function parametersOf({ expected }: Case): Parameters {
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
  visit(expected, "v");
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

// The two that are not named after it read "a,a=1" and "foo; a;a=1".
const repeatedKey = /duplicate|0x2c in dictionary key|0x3b in parameterised list key/;

/** Why this package refuses what the suite takes; undefined when it has to take it as well. */
export function stricterReason(each: Case): string | undefined {
  const members = expectedMembers(each);
  const text = each.raw.join(", ");
  if (/"__type":"(?:date|displaystring)"/.test(JSON.stringify(each.expected)))
    return "Date or Display String";
  if (members.length === 0) return "a list or dictionary without members";
  if (repeatedKey.test(each.name)) return "a repeated key";
  if (exceedsLimits(members, text)) return "over a limit";
  if (each.can_fail === true && text.startsWith(":")) return "bytes that are not canonical base64";
  return undefined;
}

function exceedsLimits(members: readonly (readonly [string, Member])[], text: string): boolean {
  const isOver = ([value, parameters]: Member): boolean =>
    parameters.length > 8 ||
    (Array.isArray(value) && (value.length > 64 || (value as Item[]).some(([, own]) => own.length > 8)));
  return text.length > 4096 || members.length > 64 || members.some(([, member]) => isOver(member));
}
