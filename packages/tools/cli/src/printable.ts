/** Text that comes from elsewhere, fit for a terminal: escape sequences in it must not steer it. Line ends and tabs stay. */
export function printable(text: string): string {
  return text.replace(
    /[^\P{C}\n\t]/gu,
    (character) => `\\u{${(character.codePointAt(0) ?? 0).toString(16)}}`,
  );
}

/** As {@link printable}, in one line. */
export function printableLine(text: string): string {
  return printable(text).replaceAll("\n", " ");
}
