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
      let answered: string | undefined;
      // Ctrl-C and Ctrl-D close it without an answer, and leave the cursor behind the question.
      lines.once("close", () => {
        if (answered === undefined) output.write("\n");
        resolve(answered);
      });
      lines.question(question, (answer) => {
        answered = answer;
        lines.close();
      });
    });
}
