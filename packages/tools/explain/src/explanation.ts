import { isGuardError, quoteForLog } from "@countersign/core";
import type { NearMiss } from "./near-miss.ts";

/** Why something was refused, and what has to change. */
export interface Explanation {
  /** Stable identifier in kebab-case; `docs/explain.md` lists them. `verifies` when nothing is wrong. */
  readonly what: string;
  /** One sentence that says what has to change. Text of the request in it is quoted, escaped and cut. */
  readonly sentence: string;
  /** The code of the refusal; undefined when nothing is refused. */
  readonly code: string | undefined;
  /** Further lines for whoever looks closer. */
  readonly details: readonly string[];
}

/** Makes an {@link Explanation} without details. */
export function explanation(
  what: string,
  code: string | undefined,
  sentence: string,
  details: readonly string[] = [],
): Explanation {
  return { what, sentence: cutSentence(sentence), code, details };
}

/** An identifier, and what has to change. */
export type Remedy = readonly [what: string, sentence: string];

/** The explanation of what a search has found: one near miss, or two. */
export function explanationOf(
  misses: readonly Pick<NearMiss<unknown>, "says" | "what">[],
  code: string | undefined,
): Explanation {
  const [first, second] = misses.map(({ says }) => says);
  const both = second === undefined ? (first ?? "") : `Two things: ${first} And: ${second}`;
  return explanation(misses.map(({ what }) => what).join("+"), code, both);
}

/** The code with which a check refuses; undefined when it admits. Throws what is no refusal. */
export function refusalOf(check: () => unknown): string | undefined {
  try {
    check();
    return undefined;
  } catch (error) {
    if (isGuardError(error)) return error.code;
    throw error;
  }
}

const maxSentence = 700;

// What stands in it is quoted already; a signature may name many components.
function cutSentence(sentence: string): string {
  return sentence.length > maxSentence ? `${sentence.slice(0, maxSentence)}...` : sentence;
}

const maxQuoted = 100;

/** Text of a stranger for a sentence. */
export function quoted(text: string): string {
  return quoteForLog(text, maxQuoted);
}

const credentialFields: ReadonlySet<string> = new Set([
  "authorization",
  "cookie",
  "proxy-authorization",
  "set-cookie",
  "x-api-key",
  "x-auth-token",
]);

/** Whether the value of a component is a credential, which no explanation shows. */
export function isCredential(identifier: string): boolean {
  const name = /^["']?([^"';]*)/.exec(identifier)?.[1] ?? "";
  return credentialFields.has(name.trim().toLowerCase());
}

const unprintable = /[^\x20-\x7e]/g;
const named: Readonly<Record<string, string>> = { "\r": "\\r", "\n": "\\n", "\t": "\\t" };
const maxLine = 1000;

/** One line with its control characters visible, cut after 1,000 characters. */
export function visibleLine(line: string): string {
  const cut = line.length > maxLine ? line.slice(0, maxLine) : line;
  const shown = cut.replace(
    unprintable,
    (character) => named[character] ?? `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
  return line.length > maxLine ? `${shown}... (${line.length} characters)` : shown;
}

const maxLines = 40;

/** A signature base to be looked at: control characters visible, line feeds shown and kept, credentials left out. */
export function visibleBase(base: string): string {
  const lines = base.split("\n");
  const shown = lines.slice(0, maxLines).map((line, index) => {
    const ended = index < lines.length - 1 ? `${line}\n` : line;
    return visibleLine(withoutCredential(ended));
  });
  if (lines.length > maxLines) shown.push(`... (${lines.length} lines)`);
  return shown.join("\n");
}

function withoutCredential(line: string): string {
  const colon = line.indexOf(":");
  return colon !== -1 && isCredential(line.slice(0, colon)) ? `${line.slice(0, colon)}: (not shown)` : line;
}
