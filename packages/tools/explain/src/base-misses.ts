import { fieldLines } from "@countersign/core/door";
import type { BaseLine, Draft, MismatchContext } from "./draft.ts";
import { missesOf, otherOrders, type NearMiss, type Row, type TableOf } from "./near-miss.ts";

/** Near misses in how the lines of a base are put together (RFC 9421 section 2.5). */
export function baseMisses(context: MismatchContext): readonly NearMiss<Draft>[] {
  const { lines } = context.right;
  return [
    ...texts.flatMap(({ part, says, rows }) =>
      missesOf<Draft, string>(rows, { part, says, put: (draft, text) => ({ ...draft, [part]: text }) }),
    ),
    ...missesOf([["base-no-blank-after-colon", "", [":"]]], colonOfParams),
    ...identifierMisses(context),
    ...missesOf(paramsLines, paramsLine),
    ...missesOf(missingLines(lines), missing),
    ...missesOf(additionalLines(context), additional),
    ...missesOf(otherLineOrders(lines), order),
  ];
}

/** The texts around and between the lines. */
const texts: readonly {
  readonly part: "colon" | "head" | "lineEnd" | "tail";
  readonly says: (how: string) => string;
  readonly rows: readonly Row<string>[];
}[] = [
  {
    part: "tail",
    says: (how) => `End the signature base with the line "@signature-params", without ${how} behind it.`,
    rows: [
      ["base-line-feed-at-end", "a line feed", ["\n"], "usual"],
      ["base-line-feed-at-end", "CR and LF", ["\r\n"]],
      ["base-line-feed-at-end", "two line feeds", ["\n\n"]],
      ["base-white-space-at-end", "a blank", [" "]],
      ["base-zero-byte-at-end", "a zero byte", ["\0"]],
    ],
  },
  {
    part: "head",
    says: (how) => `Begin the signature base with the first component, without ${how} before it.`,
    rows: [
      ["base-line-feed-at-start", "a line feed", ["\n"]],
      ["base-byte-order-mark", "a byte order mark", ["\ufeff"]],
    ],
  },
  {
    part: "colon",
    says: (how) =>
      `Put a colon and one blank behind each component identifier of the signature base: the signature fits with ${how}.`,
    rows: [
      ["base-no-blank-after-colon", "no blank", [":"], "usual"],
      ["base-colon-spacing", "a blank before the colon too", [" : "]],
      ["base-colon-spacing", "two blanks", [":  "]],
      ["base-colon-spacing", "a tab", [":\t"]],
      ["base-colon-other", "an equals sign", ["="]],
      ["base-colon-other", "no colon", [" "]],
    ],
  },
  {
    part: "lineEnd",
    says: (how) =>
      `Separate the lines of the signature base by a single LF: the signature fits with ${how} between them.`,
    rows: [
      ["base-crlf", "CR LF", ["\r\n"], "usual"],
      ["base-crlf", "CR", ["\r"]],
      ["base-line-separator", "nothing", [""]],
      ["base-line-separator", "a blank", [" "]],
      ["base-line-separator", "a backslash and the letter n", ["\\n"]],
      ["base-line-separator", "a comma", [", "]],
      ["base-line-separator", "an ampersand", ["&"]],
      ["base-line-separator", "two line feeds", ["\n\n"]],
    ],
  },
];

const colonOfParams: TableOf<Draft, string> = {
  part: "colon",
  says: () =>
    'Put a blank behind the colon of the line "@signature-params" of the signature base: the signature fits without it.',
  put: (draft, text) => withParams(draft, (line) => ({ ...line, colon: text })),
};

type Renaming = (identifier: string) => string;

const bare: Renaming = (identifier) => identifier.replaceAll('"', "");
const titleCase: Renaming = (name) => name.replaceAll(/(^|-)[a-z]/g, (letter) => letter.toUpperCase());
const quotedLowerCase =
  'Write each component identifier of the signature base in lower case and double quotes, such as "@method"';

function identifierMisses(context: MismatchContext): readonly NearMiss<Draft>[] {
  const received = new Map(
    context.rawHeaders.flatMap((name, index) =>
      index % 2 === 0 ? [[name.toLowerCase(), name] as const] : [],
    ),
  );
  const quotedAs = (spell: Renaming) => (identifier: string) =>
    identifier.replace(/^"([^"]*)"/, (_, name: string) => `"${spell(name)}"`);
  const cased = quotedAs((name) => received.get(name) ?? titleCase(name));
  const rows: readonly Row<Renaming>[] = [
    ["identifiers-unquoted", "without quotes", [bare], "usual"],
    ["identifiers-single-quotes", "in single quotes", [(name) => name.replaceAll('"', "'")]],
    ["identifiers-letter-case", "in the letter case of the header fields", [cased], "usual"],
    [
      "identifiers-letter-case",
      "unquoted, in the letter case of the header fields",
      [(name) => bare(cased(name))],
    ],
    ["identifiers-letter-case", "in the usual letter case of header fields", [quotedAs(titleCase)]],
    ["identifiers-letter-case", "in upper case", [(name) => name.toUpperCase()]],
    ["identifiers-without-at", "without the @", [(name) => name.replace("@", "")], "usual"],
    [
      "identifiers-in-parentheses",
      "as (request-target) and its like, of an older draft",
      [(name) => bare(name).replace(/^@(.*)$/, "($1)")],
    ],
  ];
  const ofOneKind = rows.map(([what, how, renamings]): Row<Renaming> => [what, how, renamings]);
  const part = "identifiers";
  return [
    ...missesOf<Draft, Renaming>(rows, {
      part,
      says: (how) => `${quotedLowerCase}: the signature fits with them ${how}.`,
      put: (draft, rename) => withIdentifiers(withParams(draft, renamed(rename)), rename),
    }),
    ...missesOf<Draft, Renaming>(ofOneKind, {
      part,
      says: (how) => `${quotedLowerCase}: the signature fits with those of the components ${how}.`,
      put: withIdentifiers,
    }),
    ...missesOf<Draft, Renaming>(ofOneKind, {
      part,
      says: (how) =>
        `Begin the last line of the signature base with "@signature-params" in double quotes: the signature fits with it ${how}.`,
      put: (draft, rename) => withParams(draft, renamed(rename)),
    }),
  ];
}

function renamed(rename: Renaming): (line: BaseLine) => BaseLine {
  return ({ identifier, value }) => ({ identifier: rename(identifier), value });
}

function withIdentifiers(draft: Draft, rename: Renaming): Draft {
  return { ...draft, lines: draft.lines.map(renamed(rename)) };
}

function withParams(draft: Draft, change: (line: BaseLine) => BaseLine): Draft {
  return { ...draft, params: draft.params === undefined ? undefined : change(draft.params) };
}

const last = 'End the signature base with the line "@signature-params": the signature fits';
const paramsLine: TableOf<Draft, (draft: Draft) => Draft> = {
  part: "params line",
  says: (how) => how,
  put: (draft, change) => change(draft),
};
const paramsLines: readonly Row<(draft: Draft) => Draft>[] = [
  ["params-line-missing", `${last} without it.`, [(draft) => ({ ...draft, params: undefined })], "usual"],
  [
    "params-line-missing",
    `${last} without it, with a line feed at the end.`,
    [(draft) => ({ ...draft, params: undefined, tail: "\n" })],
  ],
  [
    "params-line-first",
    'Put the line "@signature-params" last in the signature base: the signature fits with it first.',
    [
      ({ params, lines, ...draft }) => ({
        ...draft,
        lines: params === undefined ? lines : [params, ...lines],
        params: undefined,
      }),
    ],
  ],
  [
    "params-line-alone",
    'Put a line for each covered component into the signature base: the signature fits with "@signature-params" alone.',
    [(draft) => ({ ...draft, lines: [] })],
  ],
  ...['"signature-params"', '"@signature-parameters"', '"@signature-input"', '"signature-input"'].map(
    (name): Row<(draft: Draft) => Draft> => [
      "params-line-name",
      `Call the last line of the signature base "@signature-params": the signature fits with it called ${name}.`,
      [(draft) => withParams(draft, ({ value }) => ({ identifier: name, value }))],
    ],
  ),
];

const missing: TableOf<Draft, BaseLine> = {
  part: "lines",
  says: (identifier) =>
    `Put the line ${identifier} into the signature base: the signature fits without it, though Signature-Input names it.`,
  put: (draft, { identifier }) => ({
    ...draft,
    lines: draft.lines.filter((line) => line.identifier !== identifier),
  }),
};

function missingLines(lines: readonly BaseLine[]): readonly Row<BaseLine>[] {
  return lines.map((line) => ["base-component-missing", line.identifier, [line], "usual"]);
}

type Insertion = (lines: readonly BaseLine[]) => readonly BaseLine[];

const additional: TableOf<Draft, Insertion> = {
  part: "lines",
  says: (identifier) =>
    `Name ${identifier} in Signature-Input, or leave it out of the signature base: the signature fits with a line of it that Signature-Input does not name.`,
  put: (draft, insert) => ({ ...draft, lines: insert(draft.lines) }),
};

function additionalLines(context: MismatchContext): readonly Row<Insertion>[] {
  const { method, target, authority = "", right } = context;
  const covered = new Set(right.lines.map(({ identifier }) => identifier));
  const query = target.indexOf("?");
  const extra: readonly (readonly [identifier: string, value: string])[] = [
    ['"@authority"', authority],
    ['"@query"', query === -1 ? "?" : target.slice(query)],
    ['"@method"', method],
    ['"@path"', query === -1 ? target : target.slice(0, query)],
    ['"@target-uri"', `https://${authority}${target}`],
    ['"@scheme"', "https"],
    ...["host", "date", "content-type", "content-length", "content-digest", "user-agent"].flatMap((name) =>
      fieldLines(context, name)
        .slice(0, 1)
        .map((line) => [`"${name}"`, line.trim()] as const),
    ),
  ];
  return extra
    .filter(([identifier]) => !covered.has(identifier))
    .map(([identifier, value]) => {
      const at =
        (index: number): Insertion =>
        (lines) => [...lines.slice(0, index), { identifier, value }, ...lines.slice(index)];
      return ["base-component-additional", identifier, [at(right.lines.length), at(0), at(2)]];
    });
}

const maxOrders = 120;
const order: TableOf<Draft, readonly BaseLine[]> = {
  part: "lines",
  says: (how) =>
    `Put the lines of the signature base into the order of Signature-Input: the signature fits with ${how}.`,
  // By their identifiers: another near miss may have changed the values.
  put: (draft, lines) => ({
    ...draft,
    lines: lines.flatMap((line) => draft.lines.filter(({ identifier }) => identifier === line.identifier)),
  }),
};

function otherLineOrders(lines: readonly BaseLine[]): readonly Row<readonly BaseLine[]>[] {
  const sorted = [...lines];
  sorted.sort((one, other) => (one.identifier < other.identifier ? -1 : 1));
  return [sorted, ...otherOrders(lines, maxOrders)].map((each, index) => [
    "base-component-order",
    each.map(({ identifier }) => identifier).join(", "),
    [each],
    index === 0 ? "usual" : undefined,
  ]);
}
