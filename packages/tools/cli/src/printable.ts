/** Text that comes from elsewhere, fit for a terminal: escape sequences in it must not steer it. Line ends and tabs stay. */
export function printable(text: string): string {
  return text.replace(
    /[^\P{C}\n\t]/gu,
    (character) => `\\u{${(character.codePointAt(0) ?? 0).toString(16)}}`,
  );
}

const shownBodyLength = 2000;

/** The body of an answer as lines of a report, without what is too long for one. */
export function bodyLines(body: string, truncated: boolean = false): string[] {
  if (body === "") return [];
  const cut = truncated || body.length > shownBodyLength ? " [cut]" : "";
  return `${printable(body.slice(0, shownBodyLength))}${cut}`.split("\n").map((line) => `  ${line}`);
}

/** As {@link printable}, in one line. */
export function printableLine(text: string): string {
  return printable(text).replaceAll("\n", " ");
}
