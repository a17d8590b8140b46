import { styleText } from "node:util";

/** Text that comes from elsewhere, fit for a terminal: escape sequences in it must not steer it. Line ends and tabs stay. */
export function printable(text: string): string {
  return text.replace(
    /[^\P{C}\n\t]/gu,
    (character) => `\\u{${(character.codePointAt(0) ?? 0).toString(16)}}`,
  );
}

/** As {@link printable}, in one line. */
export function printableLine(text: string): string {
  return printable(text.replaceAll(/\s+/g, " "));
}

const shownBodyLength = 2000;

/** The body of an answer as lines of a report, cut where it is long. */
export function bodyLines(body: string, truncated: boolean = false): string[] {
  if (body === "") return [];
  const cut = truncated || body.length > shownBodyLength ? " [cut]" : "";
  return `${printable(body.slice(0, shownBodyLength))}${cut}`.split("\n").map((line) => `  ${line}`);
}

type Colour = "green" | "red" | "yellow" | "bold" | "dim";

/** Colours a text, or leaves it as it is. */
export type Paint = (colour: Colour, text: string) => string;

export function createPaint(colours: boolean): Paint {
  // Whether there are colours is decided already, for the stream that is written to.
  return (colour, text) => (colours ? styleText(colour, text, { validateStream: false }) : text);
}

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
