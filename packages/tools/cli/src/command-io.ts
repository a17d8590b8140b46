import { createInterface } from "node:readline";

/** What a command knows of the world; tests hand in their own. */
export interface CommandIo {
  readonly writeOut: (text: string) => void;
  readonly writeError: (text: string) => void;
  readonly colours: boolean;
  /** The width of the terminal; undefined where the output goes to a pipe or a file. */
  readonly columns?: number | undefined;
  /** Undefined without a terminal. */
  readonly ask?: Ask | undefined;
  /** The user's name by the operating system; undefined where it knows none. */
  readonly login?: (() => string | undefined) | undefined;
  /** Unix seconds. */
  readonly clock: () => number;
}

export const exitCodes = { asExpected: 0, otherwise: 1, usage: 2, unreachable: 3, internal: 70 } as const;

export type ExitCode = (typeof exitCodes)[keyof typeof exitCodes];

/** Sets the exit code of the command; without a call it is 0. */
export type Finish = (code: ExitCode) => void;

/** Flags with a value. */
export type Texts<Name extends string> = { readonly [Flag in Name]?: string | undefined };

/** Flags without a value. */
export type Switches<Name extends string> = { readonly [Flag in Name]?: boolean | undefined };

/** Asks a question and returns the line that was typed; undefined when the input ended without one. */
export type Ask = (question: string) => Promise<string | undefined>;

/** Asks at the terminal. Undefined without one: the input is a pipe or a file, or the question could not be seen. */
export function askAtTerminal(
  input: NodeJS.ReadableStream & { readonly isTTY?: boolean },
  output: NodeJS.WritableStream & { readonly isTTY?: boolean },
): Ask | undefined {
  if (input.isTTY !== true || output.isTTY !== true) return undefined;
  return (question) =>
    new Promise((resolve) => {
      const lines = createInterface({ input, output });
      let answered: string | undefined;
      // Ctrl-C and Ctrl-D close it without an answer, and leave the cursor after the question.
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

/** Ends the command with a code; the message is the one line that is shown. */
export class CommandError extends Error {
  override readonly name: string = "CommandError";
  readonly exitCode: ExitCode;

  constructor(message: string, exitCode: ExitCode, options?: ErrorOptions) {
    super(message, options);
    this.exitCode = exitCode;
  }
}

/** The command line or a file that it names cannot be used. */
export class UsageError extends CommandError {
  override readonly name: string = "UsageError";

  constructor(message: string, options?: ErrorOptions) {
    super(message, exitCodes.usage, options);
  }
}

/** The message of a TypeError about an option of the library, in the words of the command line. */
export function usageErrorOf(error: unknown): UsageError {
  const message = messageOf(error)
    .replace(/^\w+: (?:option (\w+))?/, (_prefix, option?: string) =>
      option === undefined ? "" : flagOf(option),
    )
    .replace("dangerouslyAllowHttp: true", "--allow-http");
  return new UsageError(message, { cause: error });
}

/** Works; a TypeError about an option of the library becomes a UsageError. */
export function inWordsOfFlags<T>(work: () => T): T {
  try {
    return work();
  } catch (error) {
    throw error instanceof TypeError ? usageErrorOf(error) : error;
  }
}

const otherFlags: ReadonlyMap<string, string> = new Map([
  ["database", "--db"],
  ["authUsername", "--username"],
  ["authPassword", "--password"],
  ["signatureSecret", "--secret"],
  ["requiredComponents", "--components"],
  ["scheme", "--webhook"],
]);

export function flagOf(option: string): string {
  const kebab = option.replaceAll(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
  return otherFlags.get(option) ?? `--${kebab}`;
}

/** The `code` of a thrown value, such as ENOENT. */
export function codeOf(thrown: unknown): string {
  const code = memberOf(thrown, "code");
  return typeof code === "string" ? code : "no code";
}

export function messageOf(thrown: unknown): string {
  const message = memberOf(thrown, "message");
  return typeof message === "string" ? message : String(thrown);
}

/** A member of any value. Errors of Node itself are no `instanceof Error` of a vm context, so callers ask for members. */
export function memberOf(value: unknown, name: string): unknown {
  return typeof value === "object" && value !== null ? Reflect.get(value, name) : undefined;
}
