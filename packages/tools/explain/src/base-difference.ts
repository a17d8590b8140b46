import { isCredential, visibleLine } from "./explanation.ts";

/** The first place in which two signature bases differ. */
export interface BaseDifference {
  /** From 1. */
  readonly line: number;
  /** From 1, in characters of that line. */
  readonly column: number;
  /** The component of that line, as the expected base has it; `the end` behind its last line. */
  readonly component: string;
  /** The two lines, control characters visible; undefined where a base has no such line, or where it is a credential. */
  readonly expected: string | undefined;
  readonly signer: string | undefined;
}

/** Where the signer's base differs first from the expected one; undefined where it does not. */
export function differenceOf(expected: string, signer: string): BaseDifference | undefined {
  if (expected === signer) return undefined;
  const expectedLines = linesOf(expected);
  const signerLines = linesOf(signer);
  const at = [...expectedLines, ""].findIndex((line, index) => line !== signerLines[index]);
  const line = at === -1 ? expectedLines.length : at;
  const one = expectedLines[line];
  const other = signerLines[line];
  return {
    line: line + 1,
    column: 1 + lengthInCommon(one ?? "", other ?? ""),
    component: one === undefined ? "the end" : visibleLine(/^"[^"]*"/.exec(one)?.[0] ?? "the line"),
    expected: shown(one),
    signer: shown(other),
  };
}

function shown(text: string | undefined): string | undefined {
  return text === undefined || isCredential(text) ? undefined : visibleLine(text);
}

// With their line ends, which may be what differs.
function linesOf(base: string): readonly string[] {
  const lines = base.split("\n");
  return lines.map((line, index) => (index < lines.length - 1 ? `${line}\n` : line));
}

function lengthInCommon(one: string, other: string): number {
  let length = 0;
  while (length < one.length && one[length] === other[length]) length += 1;
  return length;
}
