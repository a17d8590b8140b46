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

export function differenceOf(expected: string, signer: string): BaseDifference | undefined {
  if (expected === signer) return undefined;
  const expectedLines = linesOf(expected);
  const signerLines = linesOf(signer);
  const at = expectedLines.findIndex((line, index) => line !== signerLines[index]);
  const line = at === -1 ? expectedLines.length : at;
  const one = expectedLines[line];
  const other = signerLines[line];
  return {
    line: line + 1,
    column: 1 + lengthInCommon(one ?? "", other ?? ""),
    component: one === undefined ? "the end" : visibleLine(/^"[^"]*"/.exec(one)?.[0] ?? "the line"),
    expected: one === undefined || isCredential(one) ? undefined : visibleLine(one),
    signer: other === undefined || isCredential(other) ? undefined : visibleLine(other),
  };
}

// With their line ends, which may be what differs.
function linesOf(base: string): readonly string[] {
  return base.split(/(?<=\n)/);
}

function lengthInCommon(one: string, other: string): number {
  let length = 0;
  while (length < one.length && one[length] === other[length]) length += 1;
  return length;
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
  const name = /^["']?([^"';:]*)/.exec(identifier)?.[1] ?? "";
  return credentialFields.has(name.trim().toLowerCase());
}

const named: Readonly<Record<string, string>> = { "\r": "\\r", "\n": "\\n", "\t": "\\t" };
const maxLine = 1000;
const maxLines = 40;

function visibleLine(line: string): string {
  const shown = line
    .slice(0, maxLine)
    .replaceAll(
      /[^\x20-\x7e]/g,
      (character) => named[character] ?? `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`,
    );
  return line.length > maxLine ? `${shown}... (${line.length} characters)` : shown;
}

/** Control characters visible, line feeds shown and kept, credentials left out. */
export function visibleBase(base: string): string {
  const lines = linesOf(base);
  const shown = lines
    .slice(0, maxLines)
    .map((line) => visibleLine(isCredential(line) ? line.replace(/:[^\n]*/, ": (not shown)") : line));
  if (lines.length > maxLines) shown.push(`... (${lines.length} lines)`);
  return shown.join("\n");
}
