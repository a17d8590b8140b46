type Colour = "green" | "red" | "bold";

/** Colours a text, or leaves it as it is. */
export type Paint = (colour: Colour, text: string) => string;

const colourCodes: Readonly<Record<Colour, number>> = { green: 32, red: 31, bold: 1 };

export function createPaint(colours: boolean): Paint {
  return colours ? painted : plain;
}

function painted(colour: Colour, text: string): string {
  return `\u001B[${colourCodes[colour]}m${text}\u001B[0m`;
}

function plain(_colour: Colour, text: string): string {
  return text;
}
