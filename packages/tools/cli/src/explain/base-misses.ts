import { fieldLines } from "@countersign/core/internal";
import type { BaseLine, Draft, MismatchContext } from "./draft.ts";
import { quoted } from "./explanation.ts";
import { missesOf, orderRows, type NearMiss, type Row } from "./near-miss.ts";

type Change<Value> = (value: Value) => Value;

/** Near misses in how the lines of a base are put together (RFC 9421 section 2.5). */
export function baseMisses(context: MismatchContext): readonly NearMiss<Draft>[] {
  const { lines } = context.right;
  return [
    ...texts.flatMap(({ part, says, rows }) =>
      missesOf<Draft, string>(rows, {
        part,
        says: (how, text) => says(how === "" ? quoted(text) : how),
        put: (draft, text) => ({ ...draft, [part]: text }),
      }),
    ),
    ...identifierMisses(context),
    ...missesOf<Draft, Change<Draft>>(paramsLines, {
      part: "params line",
      says: (how) => how,
      put: (draft, change) => change(draft),
    }),
    ...missesOf<Draft, BaseLine>(
      lines.map((line) => ["base-component-missing", line.identifier, [line], "usual"]),
      {
        part: "lines",
        says: (identifier) =>
          `Put the line ${identifier} into the signature base: the signature fits without it, though Signature-Input names it.`,
        put: (draft, missing) =>
          withOrder(
            draft,
            lines.filter((line) => line !== missing),
          ),
      },
    ),
    ...missesOf<Draft, Change<readonly BaseLine[]>>(additionalLines(context), {
      part: "lines",
      says: (identifier) =>
        `Name ${identifier} in Signature-Input, or leave it out of the signature base: the signature fits with a line of it that Signature-Input does not name.`,
      put: (draft, insert) => ({ ...draft, lines: insert(draft.lines) }),
    }),
    ...missesOf<Draft, readonly BaseLine[]>(
      orderRows("base-component-order", lines, ({ identifier }) => identifier),
      {
        part: "lines",
        says: (how) =>
          `Put the lines of the signature base into the order of Signature-Input: the signature fits with ${how}.`,
        put: withOrder,
      },
    ),
  ];
}

// By their identifiers: another near miss may have changed the values.
function withOrder(draft: Draft, lines: readonly BaseLine[]): Draft {
  const ordered = lines.flatMap((line) => draft.lines.filter((each) => each.identifier === line.identifier));
  return { ...draft, lines: ordered };
}

/** The texts around and between the lines; a row without a name is quoted. */
const texts: readonly {
  readonly part: "colon" | "lineEnd" | "tail";
  readonly says: (how: string) => string;
  readonly rows: readonly Row<string>[];
}[] = [
  {
    part: "tail",
    says: (how) => `End the signature base with the line "@signature-params", without ${how} after it.`,
    rows: [
      ["base-line-feed-at-end", "a line feed", ["\n"], "usual"],
      ["base-line-feed-at-end", "", ["\r\n", "\n\n"]],
    ],
  },
  {
    part: "colon",
    says: (how) =>
      `Put a colon and one blank after each component identifier of the signature base: the signature fits with ${how}.`,
    rows: [
      ["base-no-blank-after-colon", "no blank", [":"], "usual"],
      ["base-colon-spacing", "", [" : ", "="]],
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
      ["base-line-separator", "", [" ", "\\n", ", ", "&"]],
    ],
  },
];

const bare: Change<string> = (identifier) => identifier.replaceAll('"', "");
const titleCase: Change<string> = (name) => name.replaceAll(/(^|-)[a-z]/g, (letter) => letter.toUpperCase());
const quotedLowerCase =
  'Write each component identifier of the signature base in lower case and double quotes, such as "@method"';

function identifierMisses({ rawHeaders }: MismatchContext): readonly NearMiss<Draft>[] {
  const names = rawHeaders.filter((_, index) => index % 2 === 0);
  const received = new Map(names.map((name) => [name.toLowerCase(), name]));
  const quotedAs = (spell: Change<string>) => (identifier: string) =>
    identifier.replace(/^"([^"]*)"/, (_, name: string) => `"${spell(name)}"`);
  const cased = quotedAs((name) => received.get(name) ?? titleCase(name));
  const rows: readonly Row<Change<string>>[] = [
    ["identifiers-unquoted", "without quotes", [bare], "usual"],
    ["identifiers-letter-case", "in the letter case of the header fields", [cased], "usual"],
    ["identifiers-letter-case", "in the usual letter case of header fields", [quotedAs(titleCase)]],
    ["identifiers-without-at", "without the @", [(name) => name.replace("@", "")], "usual"],
  ];
  const ofComponents = `${quotedLowerCase}: the signature fits with those of the components`;
  const ofParams =
    'Begin the last line of the signature base with "@signature-params" in double quotes: the signature fits with it';
  return [
    ...missesOf<Draft, Change<string>>(rows, {
      part: "identifiers",
      says: (how) => `${quotedLowerCase}: the signature fits with them ${how}.`,
      put: (draft, rename) => withIdentifiers(withParamsName(draft, rename), rename),
    }),
    ...[
      { advice: ofComponents, put: withIdentifiers },
      { advice: ofParams, put: withParamsName },
    ].flatMap(({ advice, put }) =>
      missesOf<Draft, Change<string>>(
        rows.map(([what, how, renamings]) => [what, how, renamings]),
        { part: "identifiers", says: (how) => `${advice} ${how}.`, put },
      ),
    ),
  ];
}

function withIdentifiers(draft: Draft, rename: Change<string>): Draft {
  return {
    ...draft,
    lines: draft.lines.map(({ identifier, value }) => ({ identifier: rename(identifier), value })),
  };
}

function withParamsName(draft: Draft, rename: Change<string>): Draft {
  const { params } = draft;
  return { ...draft, params: params && { ...params, identifier: rename(params.identifier) } };
}

const last = 'End the signature base with the line "@signature-params": the signature fits';
const paramsLines: readonly Row<Change<Draft>>[] = [
  ["params-line-missing", `${last} without it.`, [(draft) => ({ ...draft, params: undefined })], "usual"],
  [
    "params-line-first",
    'Put the line "@signature-params" last in the signature base: the signature fits with it first.',
    [
      (draft) => ({
        ...draft,
        lines: draft.params === undefined ? draft.lines : [draft.params, ...draft.lines],
        params: undefined,
      }),
    ],
  ],
];

const otherFields = ["host", "date", "content-type", "content-length", "content-digest", "user-agent"];

function additionalLines(context: MismatchContext): readonly Row<Change<readonly BaseLine[]>>[] {
  const { method, target, authority = "", right } = context;
  const [path = ""] = target.split("?");
  const extra: readonly (readonly [name: string, value: string | undefined])[] = [
    ["@authority", authority],
    ["@query", target.slice(path.length) || "?"],
    ["@method", method],
    ["@path", path],
    ["@target-uri", `https://${authority}${target}`],
    ["@scheme", "https"],
    ...otherFields.map((name) => [name, fieldLines(context, name)[0]?.trim()] as const),
  ];
  return extra.flatMap(([name, value]): readonly Row<Change<readonly BaseLine[]>>[] => {
    const identifier = `"${name}"`;
    if (value === undefined || right.lines.some((line) => line.identifier === identifier)) return [];
    const insertions = [right.lines.length, 0, 2].map((at): Change<readonly BaseLine[]> => (lines) => [
      ...lines.slice(0, at),
      { identifier, value },
      ...lines.slice(at),
    ]);
    return [["base-component-additional", identifier, insertions]];
  });
}
