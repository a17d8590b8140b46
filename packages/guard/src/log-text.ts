const printableAscii = /[^\x20-\x7e]|["\\]/g;

/**
 * Makes text from the wire fit for a log line: quoted, everything outside printable ASCII as `\uXXXX`,
 * cut after `maxLength` UTF-16 units (default 64), so that a caller can forge no line and flood no log.
 */
export function quoteForLog(text: string, maxLength = 64): string {
  const cut = text.length > maxLength ? text.slice(0, maxLength) : text;
  const escaped = cut.replace(printableAscii, (character) =>
    character === '"' || character === "\\"
      ? `\\${character}`
      : `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
  return text.length > maxLength ? `"${escaped}"... (${text.length} characters)` : `"${escaped}"`;
}
