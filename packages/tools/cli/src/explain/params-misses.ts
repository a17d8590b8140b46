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
export function paramsMisses({ right, label }: MismatchContext): readonly NearMiss<Draft>[] {
  const value = right.params?.value ?? "";
  const parts = partsOf(value);
  const { list, parameters } = parts;
  const withLabel: Row<string> = [
    "params-with-label",
    `the label ${quoted(label)} before it`,
    [`${label}=${value}`],
  ];
  const sign = 'Sign the line "@signature-params" as Signature-Input has it after the label:';
  const tables: readonly (readonly [advice: string, rows: readonly Row<string>[]])[] = [
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

function spellings(parts: Parts): readonly Row<string>[] {
  const { list, parameters } = parts;
  const names = parameters.map(({ name }) => name);
  const changed = (some: readonly string[], change: Change) => [withValues(parts, some, change)];
  const spaced = list + parameters.map(({ name, value }) => `; ${name}=${value}`).join("");
  const renamed = (from: string, to: string): readonly string[] => [
    list + written(parameters.map(({ name, value }) => ({ name: name === from ? to : name, value }))),
  ];
  return [
    ["params-unquoted", "no quotes around the parameters", changed(names, unquote), "usual"],
    ...names.map((name): Row<string> => {
      const isUsual = name === "alg" ? "usual" : undefined;
      return ["params-unquoted", `no quotes around ${name}`, changed([name], unquote), isUsual];
    }),
    ["params-spacing", "a blank after each semicolon", [spaced], "usual"],
    ["params-name", "keyId in place of keyid", renamed("keyid", "keyId")],
    ["params-name", "algorithm in place of alg", renamed("alg", "algorithm")],
  ];
}

function lists(list: string, rest: string): readonly Row<string>[] {
  const components = splitOutside(list.slice(1, -1), " ").filter((text) => text !== "");
  const joined = (separator: string): string => `(${components.join(separator)})${rest}`;
  return [
    ["params-list-commas", "commas between the components", [joined(", "), joined(",")], "usual"],
    ["params-list-unquoted", "no quotes around the components", [joined(" ").replaceAll('"', "")]],
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
  const inBase64 = Buffer.from(nonce).toString("base64");
  const forms = [inBase64, nonce.replaceAll("-", ""), nonce.toUpperCase(), nonce.toLowerCase()];
  return forms.map((form): Row<string> => [
    "params-nonce-form",
    form === inBase64 ? "the nonce in base64" : `the nonce ${quoted(form)}`,
    [withValues(parts, ["nonce"], () => `"${form}"`)],
  ]);
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
