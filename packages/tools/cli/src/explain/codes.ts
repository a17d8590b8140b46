import { pageText, wordsOf } from "./page-text.ts";

export { pageText, wordsOf };

/** What the page of codes says of one, without the network. */
export interface CodeText {
  /** `status 503`, `notice`, or `no answer of its own`. */
  readonly kind: string;
  /** Names of factories, or `all`. */
  readonly by: string;
  /** Names of code stand in backticks. */
  readonly cause: string;
  readonly remedy: string;
}

let known: ReadonlyMap<string, CodeText> | undefined;

/** All codes of these packages, in the order of the page. */
export function allCodes(): ReadonlyMap<string, CodeText> {
  return (known ??= readCodes(pageText("reference/codes")));
}

const section = /^### (\S+)\n\n\*(.+) · (.+)\*\n\n\*\*Cause\.\*\* (.+)\n\n\*\*Remedy\.\*\* (.+)$/gm;

function readCodes(page: string): ReadonlyMap<string, CodeText> {
  const sections = [...page.matchAll(section)];
  return new Map(
    sections.map(([, code = "", kind = "", by = "", cause = "", remedy = ""]) => [
      code,
      { kind, by: by.replaceAll("`", ""), cause: wordsOf(cause), remedy: wordsOf(remedy) },
    ]),
  );
}
