import type { Ask } from "./ask-terminal.ts";

/** What a command knows of the world; tests hand in their own. */
export interface CommandIo {
  readonly writeOut: (text: string) => void;
  readonly writeError: (text: string) => void;
  readonly colours: boolean;
  /** Undefined when nobody sits at a terminal. */
  readonly ask?: Ask | undefined;
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

/** Colours are for a terminal whose owner did not turn them off (https://no-color.org). */
export function wantsColours(
  isTerminal: boolean,
  env: Readonly<Record<string, string | undefined>>,
): boolean {
  return isTerminal && (env["NO_COLOR"] ?? "") === "" && env["TERM"] !== "dumb";
}
