import { styleText } from "node:util";

/** Makes foreign text safe for a terminal, which escape sequences could steer. Line ends and tabs stay. */
export function printable(text: string): string {
  return text.replace(
    /[^\P{C}\n\t]/gu,
    (character) => `\\u{${(character.codePointAt(0) ?? 0).toString(16)}}`,
  );
}

export function printableLine(text: string): string {
  return printable(text.replaceAll(/\s+/g, " "));
}

const shownBodyLength = 2000;

export function bodyLines(body: string, truncated: boolean = false): string[] {
  if (body === "") return [];
  const cut = truncated || body.length > shownBodyLength ? " [cut]" : "";
  return `${printable(body.slice(0, shownBodyLength))}${cut}`.split("\n").map((line) => `  ${line}`);
}

/** Lines of at most `room` columns, indented; a longer word has a line of its own. */
export function wrapped(text: string, room: number): string {
  const lines: string[] = [];
  let line = " ";
  for (const word of text.split(" ")) {
    if (line !== " " && line.length + 1 + word.length > room) {
      lines.push(line);
      line = " ";
    }
    line += ` ${word}`;
  }
  return [...lines, line].map((each) => `${each}\n`).join("");
}

type Colour = "green" | "red" | "yellow" | "bold" | "dim";

export type Paint = (colour: Colour, text: string) => string;

export function createPaint(colours: boolean): Paint {
  // The caller has already decided about colours, for the stream that it writes to.
  return (colour, text) => (colours ? styleText(colour, text, { validateStream: false }) : text);
}

/** One line in ASCII: no text in it steers a terminal or ends the line. */
export function jsonLine(value: unknown): string {
  return `${asciiJson(value)}\n`;
}

export function jsonDocument(value: unknown): string {
  return `${asciiJson(value, 2)}\n`;
}

/** Outside ASCII, characters occur only inside strings. */
export function asciiJson(value: unknown, indent?: number): string {
  return JSON.stringify(value, undefined, indent).replaceAll(
    /[^ -~\n]/g,
    (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
}
