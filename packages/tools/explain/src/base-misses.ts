import { fieldLines } from "@countersign/core";
import type { BaseLine, Draft, NearMiss } from "./draft.ts";
import { miss, otherOrders, type MismatchContext } from "./near-miss.ts";

const maxOrders = 120;

/** Near misses in how the lines of a base are put together (RFC 9421 section 2.5). */
export function baseMisses(context: MismatchContext): readonly NearMiss[] {
  return [
    ...endMisses(),
    ...colonMisses(),
    ...lineEndMisses(),
    ...identifierMisses(context),
    ...paramsLineMisses(),
    ...missingLines(context.right.lines),
    ...additionalLines(context),
    ...orderMisses(context.right.lines),
  ];
}

function behind(what: string, tail: string, says: string, isUsual = false): NearMiss {
  return miss(
    what,
    "tail",
    `End the signature base with the line "@signature-params", without ${says} behind it.`,
    (draft) => ({ ...draft, tail }),
    isUsual,
  );
}

function endMisses(): readonly NearMiss[] {
  return [
    behind("base-line-feed-at-end", "\n", "a line feed", true),
    behind("base-line-feed-at-end", "\r\n", "CR and LF"),
    behind("base-line-feed-at-end", "\n\n", "two line feeds"),
    behind("base-white-space-at-end", " ", "a blank"),
    behind("base-zero-byte-at-end", "\0", "a zero byte"),
    miss(
      "base-line-feed-at-start",
      "head",
      "Begin the signature base with the first component, without a line feed before it.",
      (draft) => ({ ...draft, head: "\n" }),
    ),
    miss(
      "base-byte-order-mark",
      "head",
      "Sign the signature base without a byte order mark: encode it as plain ASCII.",
      (draft) => ({ ...draft, head: "\ufeff" }),
    ),
  ];
}

function colon(what: string, text: string, says: string, isUsual = false): NearMiss {
  return miss(
    what,
    "colon",
    `Put a colon and one blank behind each component identifier of the signature base: the signature fits with ${says}.`,
    (draft) => ({ ...draft, colon: text }),
    isUsual,
  );
}

function colonMisses(): readonly NearMiss[] {
  return [
    colon("base-no-blank-after-colon", ":", "no blank", true),
    colon("base-colon-spacing", " : ", "a blank before the colon too"),
    colon("base-colon-spacing", ":  ", "two blanks"),
    colon("base-colon-spacing", ":\t", "a tab"),
    colon("base-colon-other", "=", "an equals sign"),
    colon("base-colon-other", " ", "no colon"),
    miss(
      "base-no-blank-after-colon",
      "colon",
      'Put a blank behind the colon of the line "@signature-params" of the signature base: the signature fits without it.',
      (draft) => withParams(draft, (line) => ({ ...line, colon: ":" })),
    ),
  ];
}

function lineEndMisses(): readonly NearMiss[] {
  const ends: readonly (readonly [text: string, says: string, isUsual: boolean])[] = [
    ["\r\n", "CR LF", true],
    ["\r", "CR", false],
    ["", "nothing", false],
    [" ", "a blank", false],
    ["\\n", "a backslash and the letter n", false],
    [", ", "a comma", false],
    ["&", "an ampersand", false],
    ["\n\n", "two line feeds", false],
  ];
  return ends.map(([text, says, isUsual]) =>
    miss(
      text.startsWith("\r") ? "base-crlf" : "base-line-separator",
      "line end",
      `Separate the lines of the signature base by a single LF: the signature fits with ${says} between them.`,
      (draft) => ({ ...draft, lineEnd: text }),
      isUsual,
    ),
  );
}

function bare(identifier: string): string {
  return identifier.replaceAll('"', "");
}

function identifierMisses(context: MismatchContext): readonly NearMiss[] {
  const received = new Map(
    context.rawHeaders.flatMap((name, index) =>
      index % 2 === 0 ? [[name.toLowerCase(), name] as const] : [],
    ),
  );
  const cased = (identifier: string): string =>
    identifier.replace(/^"([^"]*)"/, (_, name: string) => `"${received.get(name) ?? titleCase(name)}"`);
  const rows: readonly (readonly [string, string, (identifier: string) => string, boolean])[] = [
    ["identifiers-unquoted", "without quotes", bare, true],
    ["identifiers-single-quotes", "in single quotes", (name) => name.replaceAll('"', "'"), false],
    ["identifiers-letter-case", "in the letter case of the header fields", cased, true],
    [
      "identifiers-letter-case",
      "unquoted, in the letter case of the header fields",
      (name) => bare(cased(name)),
      false,
    ],
    [
      "identifiers-letter-case",
      "in the usual letter case of header fields",
      (name) => name.replace(/^"([^"]*)"/, (_, text: string) => `"${titleCase(text)}"`),
      false,
    ],
    ["identifiers-letter-case", "in upper case", (name) => name.toUpperCase(), false],
    ["identifiers-without-at", "without the @", (name) => name.replace("@", ""), true],
    [
      "identifiers-in-parentheses",
      "as (request-target) and its like, of an older draft",
      (name) => bare(name).replace(/^@(.*)$/, "($1)"),
      false,
    ],
  ];
  return rows.flatMap(([what, says, change, isUsual]) => [
    miss(
      what,
      "identifiers",
      `Write each component identifier of the signature base in lower case and double quotes, such as "@method": the signature fits with them ${says}.`,
      (draft) => withIdentifiers(withParams(draft, renamed(change)), change),
      isUsual,
    ),
    miss(
      what,
      "identifiers",
      `Write each component identifier of the signature base in lower case and double quotes, such as "@method": the signature fits with those of the components ${says}.`,
      (draft) => withIdentifiers(draft, change),
    ),
    miss(
      what,
      "identifiers",
      `Begin the last line of the signature base with "@signature-params" in double quotes: the signature fits with it ${says}.`,
      (draft) => withParams(draft, renamed(change)),
    ),
  ]);
}

function renamed(change: (identifier: string) => string): (line: BaseLine) => BaseLine {
  return ({ identifier, value }) => ({ identifier: change(identifier), value });
}

function titleCase(name: string): string {
  return name.replaceAll(/(^|-)[a-z]/g, (letter) => letter.toUpperCase());
}

function withIdentifiers(draft: Draft, change: (identifier: string) => string): Draft {
  return { ...draft, lines: draft.lines.map(renamed(change)) };
}

function withParams(draft: Draft, change: (line: BaseLine) => BaseLine): Draft {
  return { ...draft, params: draft.params === undefined ? undefined : change(draft.params) };
}

function paramsLineMisses(): readonly NearMiss[] {
  const names = ['"signature-params"', '"@signature-parameters"', '"@signature-input"', '"signature-input"'];
  return [
    miss(
      "params-line-missing",
      "params line",
      'End the signature base with the line "@signature-params": the signature fits without it.',
      (draft) => ({ ...draft, params: undefined }),
      true,
    ),
    miss(
      "params-line-missing",
      "params line",
      'End the signature base with the line "@signature-params": the signature fits without it, with a line feed at the end.',
      (draft) => ({ ...draft, params: undefined, tail: "\n" }),
    ),
    miss(
      "params-line-first",
      "params line",
      'Put the line "@signature-params" last in the signature base: the signature fits with it first.',
      ({ params, ...draft }) => ({
        ...draft,
        lines: params === undefined ? draft.lines : [params, ...draft.lines],
        params: undefined,
      }),
    ),
    miss(
      "params-line-alone",
      "params line",
      'Put a line for each covered component into the signature base: the signature fits with "@signature-params" alone.',
      (draft) => ({ ...draft, lines: [] }),
    ),
    ...names.map((name) =>
      miss(
        "params-line-name",
        "params line",
        `Call the last line of the signature base "@signature-params": the signature fits with it called ${name}.`,
        (draft) =>
          withParams(
            draft,
            renamed(() => name),
          ),
      ),
    ),
  ];
}

function missingLines(lines: readonly BaseLine[]): readonly NearMiss[] {
  return lines.map(({ identifier }) =>
    miss(
      "base-component-missing",
      "lines",
      `Put the line ${identifier} into the signature base: the signature fits without it, though Signature-Input names it.`,
      (draft) => ({ ...draft, lines: draft.lines.filter((line) => line.identifier !== identifier) }),
      true,
    ),
  );
}

function additionalLines(context: MismatchContext): readonly NearMiss[] {
  const { method, target, authority = "" } = context;
  const covered = new Set(context.right.lines.map(({ identifier }) => identifier));
  const query = target.indexOf("?");
  const field = (name: string): readonly BaseLine[] =>
    fieldLines(context, name)
      .slice(0, 1)
      .map((line) => ({ identifier: `"${name}"`, value: line.trim() }));
  const extra: readonly BaseLine[] = [
    { identifier: '"@authority"', value: authority },
    { identifier: '"@query"', value: query === -1 ? "?" : target.slice(query) },
    { identifier: '"@method"', value: method },
    { identifier: '"@path"', value: query === -1 ? target : target.slice(0, query) },
    { identifier: '"@target-uri"', value: `https://${authority}${target}` },
    { identifier: '"@scheme"', value: "https" },
    ...["host", "date", "content-type", "content-length", "content-digest", "user-agent"].flatMap(field),
  ];
  return extra
    .filter(({ identifier }) => !covered.has(identifier))
    .flatMap((line) => [
      additional(line, (lines) => [...lines, line]),
      additional(line, (lines) => [line, ...lines]),
      additional(line, (lines) => [...lines.slice(0, 2), line, ...lines.slice(2)]),
    ]);
}

function additional(
  { identifier }: BaseLine,
  change: (lines: readonly BaseLine[]) => readonly BaseLine[],
): NearMiss {
  return miss(
    "base-component-additional",
    "lines",
    `Name ${identifier} in Signature-Input, or leave it out of the signature base: the signature fits with a line of it that Signature-Input does not name.`,
    (draft) => ({ ...draft, lines: change(draft.lines) }),
  );
}

function orderMisses(lines: readonly BaseLine[]): readonly NearMiss[] {
  const sorted = [...lines];
  sorted.sort((one, other) => (one.identifier < other.identifier ? -1 : 1));
  return [sorted, ...otherOrders(lines, maxOrders)].map((order, index) =>
    miss(
      "base-component-order",
      "lines",
      `Put the lines of the signature base into the order of Signature-Input: the signature fits with ${order
        .map(({ identifier }) => identifier)
        .join(", ")}.`,
      (draft) => ({
        ...draft,
        lines: order.flatMap((line) =>
          draft.lines.filter(({ identifier }) => identifier === line.identifier),
        ),
      }),
      index === 0,
    ),
  );
}
