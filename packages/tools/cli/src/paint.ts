import { styleText } from "node:util";

type Colour = "green" | "red" | "yellow" | "bold" | "dim";

/** Colours a text, or leaves it as it is. */
export type Paint = (colour: Colour, text: string) => string;

export function createPaint(colours: boolean): Paint {
  return colours ? painted : plain;
}

// Whether there are colours is decided already, for the stream that is written to.
function painted(colour: Colour, text: string): string {
  return styleText(colour, text, { validateStream: false });
}

function plain(_colour: Colour, text: string): string {
  return text;
}
