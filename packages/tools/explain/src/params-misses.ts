import type { Draft, MismatchContext } from "./draft.ts";
import { quoted } from "./explanation.ts";
import { missesOf, orderRows, type NearMiss, type Row } from "./near-miss.ts";

interface Parameter {
  readonly name: string;
  readonly value: string;
}

interface Parts {
  readonly list: string;
  readonly parameters: readonly Parameter[];
}

/** Near misses in the value of the last line of a base (RFC 9421 section 2.3). */
export function paramsMisses({ right, member, label }: MismatchContext): readonly NearMiss<Draft>[] {
  const value = right.params?.value ?? "";
  const raw = member.trim();
  const parts = partsOf(value);
  const { list, parameters } = parts;
  const withLabel: Row<string> = [
    "params-with-label",
    `the label ${quoted(label)} before it`,
    [`${label}=${value}`],
  ];
  const sign = 'Sign the line "@signature-params" as Signature-Input has it behind the label:';
  const tables: readonly (readonly [advice: string, rows: readonly Row<string>[]])[] = [
    [
      "Write Signature-Input in the canonical form of RFC 9421 section 2.3, without white space but between components:",
      [
        [
          "params-not-canonical",
          "with the text of Signature-Input as it is sent",
          raw === value ? [] : [raw],
        ],
      ],
    ],
    [
      'Sign the parameters of "@signature-params" in the order of Signature-Input:',
      orderRows("params-order", parameters, ({ name }) => name).map(([what, names, orders, isUsual]) => {
        return [what, `with ${names}`, orders.map((order) => list + written(order)), isUsual];
      }),
    ],
    [sign, [withLabel, ...spellings(parts), ...lists(list, written(parameters))].map(withHow)],
    ['Sign all parameters of Signature-Input in the line "@signature-params":', subsets(parts)],
    [
      "Take created and expires once, and sign the numbers that Signature-Input has:",
      times(parts).map(withHow),
    ],
    [sign, nonces(parts).map(withHow)],
  ];
  return tables.flatMap(([advice, rows]) =>
    missesOf<Draft, string>(rows, {
      part: "params",
      says: (how) => `${advice} the signature fits ${how}.`,
      put: ({ params, ...draft }, text) => ({ ...draft, params: params && { ...params, value: text } }),
    }),
  );
}

function withHow([what, how, texts, isUsual]: Row<string>): Row<string> {
  return [what, `with ${how}`, texts, isUsual];
}

function partsOf(value: string): Parts {
  const [beforeEnd = value] = splitOutside(value, ")");
  const list = value.slice(0, beforeEnd.length + 1);
  const parameters = splitOutside(value.slice(list.length), ";").flatMap((text) => {
    const [name = "", ...rest] = text.split("=");
    return name === "" ? [] : [{ name, value: rest.length === 0 ? "?1" : rest.join("=") }];
  });
  return { list, parameters };
}

function written(parameters: readonly Parameter[]): string {
  return parameters.map(({ name, value }) => (value === "?1" ? `;${name}` : `;${name}=${value}`)).join("");
}

type Change = (value: string) => string;

function withValues({ list, parameters }: Parts, names: readonly string[], change: Change): string {
  const valueOf = ({ name, value }: Parameter): string => (names.includes(name) ? change(value) : value);
  return list + written(parameters.map((each) => ({ name: each.name, value: valueOf(each) })));
}

const unquote: Change = (value) => value.replace(/^"(.*)"$/, "$1");
const quote: Change = (value) => (value.startsWith('"') ? value : `"${value}"`);

function spellings(parts: Parts): readonly Row<string>[] {
  const { list, parameters } = parts;
  const names = parameters.map(({ name }) => name);
  const changed = (some: readonly string[], change: Change) => [withValues(parts, some, change)];
  const joined = (before: string, equals: string): readonly string[] => [
    list + parameters.map(({ name, value }) => before + name + equals + value).join(""),
  ];
  const renamed = (from: string, to: string): readonly string[] => [
    list + written(parameters.map(({ name, value }) => ({ name: name === from ? to : name, value }))),
  ];
  return [
    ["params-unquoted", "no quotes around the parameters", changed(names, unquote), "usual"],
    ...names.map((name): Row<string> => {
      const isUsual = name === "alg" ? "usual" : undefined;
      return ["params-unquoted", `no quotes around ${name}`, changed([name], unquote), isUsual];
    }),
    ["params-quoted", "quotes around numbers", changed(names, quote)],
    ...names.map((name): Row<string> => ["params-quoted", `quotes around ${name}`, changed([name], quote)]),
    ["params-spacing", "a blank behind each semicolon", joined("; ", "="), "usual"],
    ["params-spacing", "blanks around the equals signs", joined(";", " = ")],
    ["params-separator", "commas between the parameters", joined(",", "=")],
    ["params-separator", "a semicolon at the end", [`${list}${written(parameters)};`]],
    ["params-name", "keyId in place of keyid", renamed("keyid", "keyId")],
    ["params-name", "algorithm in place of alg", renamed("alg", "algorithm")],
    ["params-letter-case", "alg in upper case", changed(["alg"], (alg) => alg.toUpperCase())],
  ];
}

function lists(list: string, rest: string): readonly Row<string>[] {
  const components = splitOutside(list.slice(1, -1), " ").filter((text) => text !== "");
  const sorted = [...components];
  sorted.sort();
  const joined = (members: readonly string[], separator = " "): readonly string[] => [
    `(${members.join(separator)})${rest}`,
  ];
  const bare = components.map((component) => component.replaceAll('"', ""));
  return [
    ["params-list-commas", "commas between the components", joined(components, ", "), "usual"],
    ["params-list-commas", "commas between the components", joined(components, ",")],
    ["params-list-unquoted", "no quotes around the components", joined(bare)],
    ["params-list-spacing", "blanks inside of the parentheses", [`( ${components.join(" ")} )${rest}`]],
    ["params-list-spacing", "two blanks between the components", joined(components, "  ")],
    ["params-list-without-parentheses", "no parentheses", [components.join(" ") + rest]],
    ["params-list-order", "the components in another order", joined(sorted)],
    ["params-list-brackets", "the components in brackets", [`[${components.join(", ")}]${rest}`]],
    ...components.map((left): Row<string> => {
      const others = components.filter((component) => component !== left);
      return ["params-list-component-missing", `the list without ${left}`, joined(others)];
    }),
    ["params-list-missing", "the parameters alone", [rest.slice(1)]],
    ["params-list-alone", "the list of components alone", [list]],
  ];
}

const maxSubsets = 32;

function subsets({ list, parameters }: Parts): readonly Row<string>[] {
  const length = Math.min(2 ** parameters.length - 1, maxSubsets);
  return Array.from({ length }, (_, subset) => {
    const isKept = (index: number): boolean => (subset & (1 << index)) !== 0;
    const left = parameters.filter((_parameter, index) => !isKept(index));
    const kept = parameters.filter((_parameter, index) => isKept(index));
    const names = left.map(({ name }) => name).join(", ");
    return ["params-missing-parameter", `without ${names}`, [list + written(kept)]];
  });
}

const timeNames = [["created", "expires"], ["created"], ["expires"]];
const shifts = [-5, -4, -3, -2, -1, 1, 2, 3, 4, 5];

function times(parts: Parts): readonly Row<string>[] {
  const changed = (names: readonly string[], by: (seconds: number) => number): string => {
    return withValues(parts, names, (value) => (/^\d+$/.test(value) ? String(by(Number(value))) : value));
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

function nonces(parts: Parts): readonly Row<string>[] {
  const nonce = parts.parameters.find(({ name }) => name === "nonce")?.value.slice(1, -1) ?? "";
  if (nonce === "") return [];
  const decoded = Buffer.from(nonce, "base64");
  const forms = [
    nonce.replaceAll("-", ""),
    nonce.toUpperCase(),
    nonce.toLowerCase(),
    nonce.replace(/=+$/, ""),
    "",
    ...(["latin1", "hex", "base64url"] as const).map((encoding) => decoded.toString(encoding)),
    Buffer.from(nonce, "hex").toString("base64"),
  ];
  const withNonce = (text: string): string => withValues(parts, ["nonce"], () => `"${text}"`);
  return [
    ["params-nonce-form", "the nonce in base64", [withNonce(Buffer.from(nonce).toString("base64"))]],
    ...forms.map((text): Row<string> => [
      "params-nonce-form",
      `the nonce ${quoted(text)}`,
      [withNonce(text)],
    ]),
  ];
}

function splitOutside(text: string, separator: string): readonly string[] {
  const parts = [""];
  for (const [piece] of text.matchAll(/"(?:[^"\\]|\\.)*(?:"|\\?$)|[^"]/gs)) {
    if (piece === separator) parts.push("");
    else parts.push(`${parts.pop()}${piece}`);
  }
  return parts;
}

export function memberText(field: string, label: string): string {
  // Within a member commas are only in strings.
  const member = splitOutside(field, ",").find((text) => text.trim().startsWith(`${label}=`));
  return member === undefined ? "" : member.trim().slice(label.length + 1);
}
