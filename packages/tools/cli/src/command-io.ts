import type { Ask } from "./ask-terminal.ts";

/** What a command knows of the world; tests hand in their own. */
export interface CommandIo {
  readonly writeOut: (text: string) => void;
  readonly writeError: (text: string) => void;
  readonly colours: boolean;
  /** Of the terminal that the output goes to; undefined where it goes to a pipe or a file, which take lines of any length. */
  readonly columns?: number | undefined;
  /** Undefined when nobody sits at a terminal. */
  readonly ask?: Ask | undefined;
  /** Who runs the command, as the operating system has it; undefined or absent where it does not know. */
  readonly login?: (() => string | undefined) | undefined;
  /** Unix seconds. */
  readonly clock: () => number;
}

/** Exit codes of every command. */
export const exitCodes = { asExpected: 0, otherwise: 1, usage: 2, unreachable: 3, internal: 70 } as const;

export type ExitCode = (typeof exitCodes)[keyof typeof exitCodes];

/** The command line or a file that it names cannot be used; the message is the one line that is shown. */
export class UsageError extends Error {
  override readonly name: string = "UsageError";
}

/**
 * Colours are for a terminal whose owner did not turn them off (https://no-color.org), and for whoever asks for them
 * (https://force-color.org), which comes first, as in Node.
 */
export function wantsColours(
  isTerminal: boolean,
  env: Readonly<Record<string, string | undefined>>,
): boolean {
  const forced = env["FORCE_COLOR"] ?? "";
  if (forced !== "") return forced !== "0" && forced !== "false";
  return isTerminal && (env["NO_COLOR"] ?? "") === "" && env["TERM"] !== "dumb";
}

/** The values of a flag that may be given again and again. */
export function collect(value: string, before: readonly string[] = []): readonly string[] {
  return [...before, value];
}
