import { createInterface } from "node:readline";

/** Asks a question and gives the line that was typed; undefined when the input ended without one. */
export type Ask = (question: string) => Promise<string | undefined>;

/**
 * Asks whoever sits at the terminal. Undefined when nobody does: the input is a pipe or a file, or the question could not be
 * seen.
 */
export function askAtTerminal(
  input: NodeJS.ReadableStream & { readonly isTTY?: boolean },
  output: NodeJS.WritableStream & { readonly isTTY?: boolean },
): Ask | undefined {
  if (input.isTTY !== true || output.isTTY !== true) return undefined;
  return (question) =>
    new Promise((resolve) => {
      const lines = createInterface({ input, output });
      // Ctrl-C and Ctrl-D close it. A promise that is settled stays as it is.
      lines.once("close", () => resolve(undefined));
      lines.question(question, (answer) => {
        resolve(answer);
        lines.close();
      });
    });
}
