import type { NearMiss } from "./draft.ts";
import { quoted } from "./explanation.ts";
import { miss, otherOrders, type MismatchContext } from "./near-miss.ts";

/** The value of `@signature-params` in its parts, each as it is serialised. */
interface ParamsParts {
  /** The inner list with its parentheses. */
  readonly list: string;
  readonly components: readonly string[];
  readonly parameters: readonly Parameter[];
}

interface Parameter {
  readonly name: string;
  readonly value: string;
}

const maxOrders = 120;
const group = "params";

/** Near misses in the value of the last line of a base (RFC 9421 section 2.3). */
export function paramsMisses({ right, member, label }: MismatchContext): readonly NearMiss[] {
  const value = right.params?.value ?? "";
  const parts = partsOf(value);
  const raw = member.trim();
  return [
    ...(raw === value
      ? []
      : [spelled("params-not-canonical", raw, "the text of Signature-Input as it is sent")]),
    spelled("params-with-label", `${label}=${value}`, `the label ${quoted(label)} before it`),
    ...orderMisses(parts),
    ...spellingMisses(parts),
    ...listMisses(parts),
    ...missingParameters(parts),
    ...timeMisses(parts),
    ...nonceMisses(parts),
  ];
}

function spelled(what: string, value: string, says: string, isUsual = false): NearMiss {
  const sentence =
    what === "params-not-canonical"
      ? `Write Signature-Input in the canonical form of RFC 9421 section 2.3, without white space but between components: the signature fits with ${says}.`
      : `Sign the line "@signature-params" as Signature-Input has it behind the label: the signature fits with ${says}.`;
  return lineMiss(what, value, sentence, isUsual);
}

function lineMiss(what: string, value: string, sentence: string, isUsual = false): NearMiss {
  return miss(
    what,
    group,
    sentence,
    (draft) => ({
      ...draft,
      params: draft.params === undefined ? undefined : { ...draft.params, value },
    }),
    isUsual,
  );
}

function orderMisses({ list, parameters }: ParamsParts): readonly NearMiss[] {
  const sorted = [...parameters];
  sorted.sort((one, other) => (one.name < other.name ? -1 : 1));
  return [sorted, ...otherOrders(parameters, maxOrders)].map((order, index) =>
    lineMiss(
      "params-order",
      serialized(list, order),
      `Sign the parameters of "@signature-params" in the order of Signature-Input: the signature fits with ${namesOf(order)}.`,
      index === 0,
    ),
  );
}

function namesOf(parameters: readonly Parameter[]): string {
  return parameters.length === 0 ? "none" : parameters.map(({ name }) => name).join(", ");
}

function unquote({ name, value }: Parameter): Parameter {
  return {
    name,
    value: value.replace(/^"(.*)"$/, "$1"),
  };
}

function quote({ name, value }: Parameter): Parameter {
  return {
    name,
    value: value.startsWith('"') ? value : `"${value}"`,
  };
}

function spellingMisses({ list, parameters }: ParamsParts): readonly NearMiss[] {
  const text = (changed: readonly Parameter[]): string => serialized(list, changed);
  const one = (name: string, change: (parameter: Parameter) => Parameter): readonly Parameter[] =>
    parameters.map((parameter) => (parameter.name === name ? change(parameter) : parameter));
  const names = parameters.map(({ name }) => name);
  return [
    spelled("params-unquoted", text(parameters.map(unquote)), "no quotes around the parameters", true),
    ...names.map((name) =>
      spelled("params-unquoted", text(one(name, unquote)), `no quotes around ${name}`, name === "alg"),
    ),
    spelled("params-quoted", text(parameters.map(quote)), "quotes around numbers"),
    ...names.map((name) => spelled("params-quoted", text(one(name, quote)), `quotes around ${name}`)),
    spelled(
      "params-spacing",
      list + parameters.map(({ name, value }) => `; ${name}=${value}`).join(""),
      "a blank behind each semicolon",
      true,
    ),
    spelled(
      "params-spacing",
      list + parameters.map(({ name, value }) => `;${name} = ${value}`).join(""),
      "blanks around the equals signs",
    ),
    spelled(
      "params-separator",
      list + parameters.map(({ name, value }) => `,${name}=${value}`).join(""),
      "commas between the parameters",
    ),
    spelled("params-separator", `${text(parameters)};`, "a semicolon at the end"),
    spelled(
      "params-name",
      text(parameters.map(({ name, value }) => ({ name: name === "keyid" ? "keyId" : name, value }))),
      "keyId in place of keyid",
    ),
    spelled(
      "params-name",
      text(parameters.map(({ name, value }) => ({ name: name === "alg" ? "algorithm" : name, value }))),
      "algorithm in place of alg",
    ),
    spelled(
      "params-letter-case",
      text(one("alg", ({ name, value }) => ({ name, value: value.toUpperCase() }))),
      "alg in upper case",
    ),
  ];
}

const maxSubsets = 32;

function missingParameters({ list, parameters }: ParamsParts): readonly NearMiss[] {
  const misses: NearMiss[] = [];
  for (let subset = 0; subset < Math.min(2 ** parameters.length - 1, maxSubsets); subset += 1) {
    const kept = parameters.filter((_, index) => (subset & (1 << index)) !== 0);
    const left = parameters.filter((parameter) => !kept.includes(parameter));
    misses.push(
      lineMiss(
        "params-missing-parameter",
        serialized(list, kept),
        `Sign all parameters of Signature-Input in the line "@signature-params": the signature fits without ${namesOf(left)}.`,
      ),
    );
  }
  return misses;
}

const shifts = [-5, -4, -3, -2, -1, 1, 2, 3, 4, 5];

function timeSentence(says: string): string {
  return `Take created and expires once, and sign the numbers that Signature-Input has: the signature fits with ${says}.`;
}

function timeMisses({ list, parameters }: ParamsParts): readonly NearMiss[] {
  const times = new Set(["created", "expires"]);
  const changed = (names: ReadonlySet<string>, change: (seconds: number) => number): string =>
    serialized(
      list,
      parameters.map(({ name, value }) => ({
        name,
        value: names.has(name) && /^\d+$/.test(value) ? String(change(Number(value))) : value,
      })),
    );
  return [
    ...shifts.flatMap((shift) =>
      [times, new Set(["created"]), new Set(["expires"])].map((names) =>
        lineMiss(
          "params-time-differs",
          changed(names, (seconds) => seconds + shift),
          timeSentence(`${[...names].join(" and ")} ${Math.abs(shift)} s ${shift < 0 ? "earlier" : "later"}`),
        ),
      ),
    ),
    ...[times, new Set(["created"])].map((names) =>
      lineMiss(
        "params-time-milliseconds",
        changed(names, (seconds) => seconds * 1000),
        timeSentence("milliseconds"),
      ),
    ),
  ];
}

function nonceMisses({ list, parameters }: ParamsParts): readonly NearMiss[] {
  const nonce = parameters.find(({ name }) => name === "nonce")?.value.slice(1, -1) ?? "";
  const forms: readonly (readonly [text: string, says: string])[] = [
    [nonce.replaceAll("-", ""), "the nonce without its hyphens"],
    [nonce.toUpperCase(), "the nonce in upper case"],
    [nonce.toLowerCase(), "the nonce in lower case"],
    [Buffer.from(nonce).toString("base64"), "the nonce in base64"],
    [Buffer.from(nonce, "base64").toString("latin1"), "the nonce decoded from base64"],
    [Buffer.from(nonce, "base64").toString("hex"), "the nonce in hex, not base64"],
    [Buffer.from(nonce, "base64").toString("base64url"), "the nonce in base64url, not base64"],
    [Buffer.from(nonce, "hex").toString("base64"), "the nonce in base64, not hex"],
    [nonce.replace(/=+$/, ""), "the nonce without its padding"],
    ["", "an empty nonce"],
  ];
  if (nonce === "") return [];
  return forms.map(([text, says]) =>
    spelled(
      "params-nonce-form",
      serialized(
        list,
        parameters.map(({ name, value }) => ({ name, value: name === "nonce" ? `"${text}"` : value })),
      ),
      says,
    ),
  );
}

function listOf(members: readonly string[], separator = " "): string {
  return `(${members.join(separator)})`;
}

function listMisses({ list, components, parameters }: ParamsParts): readonly NearMiss[] {
  const rest = serialized("", parameters);
  const sorted = [...components];
  sorted.sort();
  const bare = components.map((component) => component.replaceAll('"', ""));
  return [
    spelled("params-list-commas", listOf(components, ", ") + rest, "commas between the components", true),
    spelled("params-list-commas", listOf(components, ",") + rest, "commas between the components"),
    spelled("params-list-unquoted", listOf(bare) + rest, "no quotes around the components"),
    spelled("params-list-spacing", `( ${components.join(" ")} )${rest}`, "blanks inside of the parentheses"),
    spelled("params-list-spacing", listOf(components, "  ") + rest, "two blanks between the components"),
    spelled("params-list-without-parentheses", components.join(" ") + rest, "no parentheses"),
    spelled("params-list-order", listOf(sorted) + rest, "the components in another order"),
    spelled("params-list-brackets", `[${components.join(", ")}]${rest}`, "the components in brackets"),
    ...components.map((left) =>
      spelled(
        "params-list-component-missing",
        listOf(components.filter((component) => component !== left)) + rest,
        `the list without ${left}`,
      ),
    ),
    spelled("params-list-missing", rest.slice(1), "the parameters alone"),
    spelled("params-list-alone", list, "the list of components alone"),
  ];
}

function serialized(list: string, parameters: readonly Parameter[]): string {
  return (
    list + parameters.map(({ name, value }) => (value === "?1" ? `;${name}` : `;${name}=${value}`)).join("")
  );
}

function partsOf(value: string): ParamsParts {
  const end = endOfList(value);
  const list = value.slice(0, end);
  const parameters = splitOutside(value.slice(end), ";").flatMap((text) => {
    const [name = "", ...rest] = text.split("=");
    return name === "" ? [] : [{ name, value: rest.length === 0 ? "?1" : rest.join("=") }];
  });
  return { list, components: splitOutside(list.slice(1, -1), " ").filter((text) => text !== ""), parameters };
}

function endOfList(value: string): number {
  let inString = false;
  for (let index = 0; index < value.length; index += 1) {
    const character = value[index];
    if (inString && character === "\\") index += 1;
    else if (character === '"') inString = !inString;
    else if (!inString && character === ")") return index + 1;
  }
  return value.length;
}

function splitOutside(text: string, separator: string): readonly string[] {
  const parts: string[] = [];
  let inString = false;
  let start = 0;
  for (let index = 0; index < text.length; index += 1) {
    const character = text[index];
    if (inString && character === "\\") index += 1;
    else if (character === '"') inString = !inString;
    else if (!inString && character === separator) {
      parts.push(text.slice(start, index));
      start = index + 1;
    }
  }
  parts.push(text.slice(start));
  return parts;
}

/** The text behind the label's `=` in a dictionary field; empty where the label is not in it. */
export function memberText(field: string, label: string): string {
  const member = splitMembers(field).find((text) => text.trim().startsWith(`${label}=`));
  return member === undefined ? "" : member.trim().slice(label.length + 1);
}

function splitMembers(field: string): readonly string[] {
  // Commas stand in strings alone, and the inner list of a signature has none.
  return splitOutside(field, ",");
}
