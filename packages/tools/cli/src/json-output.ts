/** One line of JSON in ASCII: no text in it steers a terminal or ends the line. */
export function jsonLine(value: unknown): string {
  return `${asciiJson(value)}\n`;
}

/** One JSON document over several lines, in ASCII likewise. */
export function jsonDocument(value: unknown): string {
  return `${asciiJson(value, 2)}\n`;
}

/** JSON in ASCII. Beyond it, characters stand inside strings alone. */
export function asciiJson(value: unknown, indent?: number): string {
  return JSON.stringify(value, undefined, indent).replaceAll(
    /[^ -~\n]/g,
    (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
}
