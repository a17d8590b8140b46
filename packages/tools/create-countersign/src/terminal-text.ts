/** Escapes what could steer a terminal. Line ends stay. */
export function printable(text: string): string {
  return text.replaceAll(
    /[^\P{C}\n]|[\p{Zl}\p{Zp}]/gu,
    (character) => `\\u{${(character.codePointAt(0) ?? 0).toString(16)}}`,
  );
}

const plain = /^[\w./@+-]+$/;
// In double quotes, which cmd.exe and PowerShell have in common: neither expands any of these.
const plainInWindows = /^[\p{L}\p{M}\p{N} _.\\/:@+,=()-]+$/u;

/** Quotes a word for the platform's shells; undefined where those of Windows disagree. */
export function quoted(word: string, platform: string): string | undefined {
  // What begins with a dash is an option, and a dash alone the folder before.
  const named = word.startsWith("-") ? `./${word}` : word;
  if (plain.test(named)) return named;
  if (platform === "win32") return plainInWindows.test(named) ? `"${named}"` : undefined;
  // In single quotes a shell of POSIX expands nothing.
  return `'${named.replaceAll("'", String.raw`'\''`)}'`;
}

export function folderNameFault(folder: string): string | undefined {
  if (!/[\p{Cc}\p{Zl}\p{Zp}\p{Bidi_Control}]/u.test(folder)) return undefined;
  return `the name of the folder has control characters: ${printable(folder).replaceAll("\n", String.raw`\u{a}`)}`;
}
