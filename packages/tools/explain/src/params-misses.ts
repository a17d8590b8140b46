import type { Draft, MismatchContext } from "./draft.ts";
import { quoted } from "./explanation.ts";
import { missesOf, otherOrders, type NearMiss, type Row, type TableOf } from "./near-miss.ts";

interface Parameter {
  readonly name: string;
  readonly value: string;
}

/** Near misses in the value of the last line of a base (RFC 9421 section 2.3). */
export function paramsMisses({ right, member, label }: MismatchContext): readonly NearMiss<Draft>[] {
  const value = right.params?.value ?? "";
  const raw = member.trim();
  const end = endOfList(value);
  const list = value.slice(0, end);
  const parameters = splitOutside(value.slice(end), ";").flatMap((text) => {
    const [name = "", ...rest] = text.split("=");
    return name === "" ? [] : [{ name, value: rest.length === 0 ? "?1" : rest.join("=") }];
  });
  const components = splitOutside(list.slice(1, -1), " ").filter((text) => text !== "");
  const withLabel: Row<string> = [
    "params-with-label",
    `the label ${quoted(label)} before it`,
    [`${label}=${value}`],
  ];
  return [
    ...missesOf([["params-not-canonical", "", raw === value ? [] : [raw]]], canonical),
    ...missesOf([withLabel], spelled),
    ...missesOf(otherParameterOrders(list, parameters), ordered),
    ...missesOf(spellings(list, parameters), spelled),
    ...missesOf(lists(list, components, written(parameters)), spelled),
    ...missesOf(subsets(list, parameters), complete),
    ...missesOf(times(list, parameters), timed),
    ...missesOf(nonces(list, parameters), spelled),
  ];
}

function table(says: (how: string) => string): TableOf<Draft, string> {
  return {
    part: "params",
    says,
    put: ({ params, ...draft }, value) => ({ ...draft, params: params && { ...params, value } }),
  };
}

const canonical = table(
  () =>
    "Write Signature-Input in the canonical form of RFC 9421 section 2.3, without white space but between components: the signature fits with the text of Signature-Input as it is sent.",
);
const spelled = table(
  (how) =>
    `Sign the line "@signature-params" as Signature-Input has it behind the label: the signature fits with ${how}.`,
);
const ordered = table(
  (names) =>
    `Sign the parameters of "@signature-params" in the order of Signature-Input: the signature fits with ${names}.`,
);
const complete = table(
  (names) =>
    `Sign all parameters of Signature-Input in the line "@signature-params": the signature fits without ${names}.`,
);
const timed = table(
  (how) =>
    `Take created and expires once, and sign the numbers that Signature-Input has: the signature fits with ${how}.`,
);

function written(parameters: readonly Parameter[]): string {
  return parameters.map(({ name, value }) => (value === "?1" ? `;${name}` : `;${name}=${value}`)).join("");
}

function namesOf(parameters: readonly Parameter[]): string {
  return parameters.length === 0 ? "none" : parameters.map(({ name }) => name).join(", ");
}

const maxOrders = 120;

function otherParameterOrders(list: string, parameters: readonly Parameter[]): readonly Row<string>[] {
  const sorted = [...parameters];
  sorted.sort((one, other) => (one.name < other.name ? -1 : 1));
  return [sorted, ...otherOrders(parameters, maxOrders)].map((order, index) => [
    "params-order",
    namesOf(order),
    [list + written(order)],
    index === 0 ? "usual" : undefined,
  ]);
}

type Change = (parameter: Parameter) => Parameter;

/** The change of a parameter with one of these names. */
function only(names: readonly string[], change: (value: string) => string): Change {
  return ({ name, value }) => ({ name, value: names.includes(name) ? change(value) : value });
}

function named(from: string, to: string): Change {
  return ({ name, value }) => ({ name: name === from ? to : name, value });
}

const unquote = (value: string): string => value.replace(/^"(.*)"$/, "$1");
const quote = (value: string): string => (value.startsWith('"') ? value : `"${value}"`);

function spellings(list: string, parameters: readonly Parameter[]): readonly Row<string>[] {
  const changed = (change: Change): string => list + written(parameters.map(change));
  const joined = (join: (parameter: Parameter) => string): string => list + parameters.map(join).join("");
  const names = parameters.map(({ name }) => name);
  return [
    ["params-unquoted", "no quotes around the parameters", [changed(only(names, unquote))], "usual"],
    ...names.map((name): Row<string> => {
      const isUsual = name === "alg" ? "usual" : undefined;
      return ["params-unquoted", `no quotes around ${name}`, [changed(only([name], unquote))], isUsual];
    }),
    ["params-quoted", "quotes around numbers", [changed(only(names, quote))]],
    ...names.map((name): Row<string> => [
      "params-quoted",
      `quotes around ${name}`,
      [changed(only([name], quote))],
    ]),
    [
      "params-spacing",
      "a blank behind each semicolon",
      [joined(({ name, value }) => `; ${name}=${value}`)],
      "usual",
    ],
    [
      "params-spacing",
      "blanks around the equals signs",
      [joined(({ name, value }) => `;${name} = ${value}`)],
    ],
    ["params-separator", "commas between the parameters", [joined(({ name, value }) => `,${name}=${value}`)]],
    ["params-separator", "a semicolon at the end", [`${list}${written(parameters)};`]],
    ["params-name", "keyId in place of keyid", [changed(named("keyid", "keyId"))]],
    ["params-name", "algorithm in place of alg", [changed(named("alg", "algorithm"))]],
    ["params-letter-case", "alg in upper case", [changed(only(["alg"], (alg) => alg.toUpperCase()))]],
  ];
}

function lists(list: string, components: readonly string[], rest: string): readonly Row<string>[] {
  const sorted = [...components];
  sorted.sort();
  const joined = (members: readonly string[], separator = " "): string =>
    `(${members.join(separator)})${rest}`;
  const bare = components.map((component) => component.replaceAll('"', ""));
  return [
    ["params-list-commas", "commas between the components", [joined(components, ", ")], "usual"],
    ["params-list-commas", "commas between the components", [joined(components, ",")]],
    ["params-list-unquoted", "no quotes around the components", [joined(bare)]],
    ["params-list-spacing", "blanks inside of the parentheses", [`( ${components.join(" ")} )${rest}`]],
    ["params-list-spacing", "two blanks between the components", [joined(components, "  ")]],
    ["params-list-without-parentheses", "no parentheses", [components.join(" ") + rest]],
    ["params-list-order", "the components in another order", [joined(sorted)]],
    ["params-list-brackets", "the components in brackets", [`[${components.join(", ")}]${rest}`]],
    ...components.map((left): Row<string> => [
      "params-list-component-missing",
      `the list without ${left}`,
      [joined(components.filter((component) => component !== left))],
    ]),
    ["params-list-missing", "the parameters alone", [rest.slice(1)]],
    ["params-list-alone", "the list of components alone", [list]],
  ];
}

const maxSubsets = 32;

function subsets(list: string, parameters: readonly Parameter[]): readonly Row<string>[] {
  const length = Math.min(2 ** parameters.length - 1, maxSubsets);
  return Array.from({ length }, (_, subset) => {
    const isKept = (index: number): boolean => (subset & (1 << index)) !== 0;
    const left = parameters.filter((_parameter, index) => !isKept(index));
    const kept = parameters.filter((_parameter, index) => isKept(index));
    return ["params-missing-parameter", namesOf(left), [list + written(kept)]];
  });
}

const timeNames = [["created", "expires"], ["created"], ["expires"]];
const shifts = [-5, -4, -3, -2, -1, 1, 2, 3, 4, 5];

function times(list: string, parameters: readonly Parameter[]): readonly Row<string>[] {
  const changed = (names: readonly string[], change: (seconds: number) => number): string => {
    const text = (value: string): string => (/^\d+$/.test(value) ? String(change(Number(value))) : value);
    return list + written(parameters.map(only(names, text)));
  };
  return [
    ...shifts.flatMap((shift) =>
      timeNames.map((names): Row<string> => {
        const how = `${names.join(" and ")} ${Math.abs(shift)} s ${shift < 0 ? "earlier" : "later"}`;
        return ["params-time-differs", how, [changed(names, (seconds) => seconds + shift)]];
      }),
    ),
    [
      "params-time-milliseconds",
      "milliseconds",
      timeNames.map((names) => changed(names, (seconds) => seconds * 1000)),
    ],
  ];
}

function nonces(list: string, parameters: readonly Parameter[]): readonly Row<string>[] {
  const nonce = parameters.find(({ name }) => name === "nonce")?.value.slice(1, -1) ?? "";
  if (nonce === "") return [];
  const decoded = Buffer.from(nonce, "base64");
  const forms: readonly (readonly [how: string, text: string])[] = [
    ["the nonce without its hyphens", nonce.replaceAll("-", "")],
    ["the nonce in upper case", nonce.toUpperCase()],
    ["the nonce in lower case", nonce.toLowerCase()],
    ["the nonce in base64", Buffer.from(nonce).toString("base64")],
    ["the nonce decoded from base64", decoded.toString("latin1")],
    ["the nonce in hex, not base64", decoded.toString("hex")],
    ["the nonce in base64url, not base64", decoded.toString("base64url")],
    ["the nonce in base64, not hex", Buffer.from(nonce, "hex").toString("base64")],
    ["the nonce without its padding", nonce.replace(/=+$/, "")],
    ["an empty nonce", ""],
  ];
  return forms.map(([how, text]) => [
    "params-nonce-form",
    how,
    [list + written(parameters.map(only(["nonce"], () => `"${text}"`)))],
  ]);
}

function endOfList(value: string): number {
  const [list = value] = splitOutside(value, ")");
  return Math.min(list.length + 1, value.length);
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
  // Commas stand in strings alone, and the inner list of a signature has none.
  const member = splitOutside(field, ",").find((text) => text.trim().startsWith(`${label}=`));
  return member === undefined ? "" : member.trim().slice(label.length + 1);
}
