import { createInterface } from "node:readline";

/** A command's access to the world; tests hand in their own. */
export interface CommandIo {
  readonly writeOut: (text: string) => void;
  readonly writeError: (text: string) => void;
  readonly colours: boolean;
  /** Undefined if the output is a pipe or file. */
  readonly columns?: number | undefined;
  readonly ask?: Ask | undefined;
  /** The operating system's name for the user, if it knows one. */
  readonly login?: (() => string | undefined) | undefined;
  /** Unix seconds. */
  readonly clock: () => number;
}

export const exitCodes = { asExpected: 0, otherwise: 1, usage: 2, unreachable: 3, internal: 70 } as const;

export type ExitCode = (typeof exitCodes)[keyof typeof exitCodes];

/** Sets the exit code; the default is 0. */
export type Finish = (code: ExitCode) => void;

export type Texts<Name extends string> = { readonly [Flag in Name]?: string | undefined };

export type Lists<Name extends string> = { readonly [Flag in Name]?: readonly string[] | undefined };

export type Switches<Name extends string> = { readonly [Flag in Name]?: boolean | undefined };

/** Returns the typed line; undefined when the input ended without one. */
export type Ask = (question: string) => Promise<string | undefined>;

/** Undefined without a terminal: the input is a pipe or a file, or nobody would see the question. */
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

/** The message is the one line that is shown. */
export class CommandError extends Error {
  override readonly name: string = "CommandError";
  readonly exitCode: ExitCode;

  constructor(message: string, exitCode: ExitCode, options?: ErrorOptions) {
    super(message, options);
    this.exitCode = exitCode;
  }
}

export class UsageError extends CommandError {
  override readonly name: string = "UsageError";

  constructor(message: string, options?: ErrorOptions) {
    super(message, exitCodes.usage, options);
  }
}

/** Rephrases a TypeError about a library option in the words of the command line. */
export function usageErrorOf(error: unknown): UsageError {
  const message = messageOf(error)
    .replace(/^\w+: (?:option (\w+))?/, (_prefix, option?: string) =>
      option === undefined ? "" : flagOf(option),
    )
    .replace("dangerouslyAllowHttp: true", "--allow-http");
  return new UsageError(message, { cause: error });
}

/** Turns a TypeError about a library option into a UsageError. */
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

export function codeOf(thrown: unknown): string {
  const code = memberOf(thrown, "code");
  return typeof code === "string" ? code : "no code";
}

export function messageOf(thrown: unknown): string {
  const message = memberOf(thrown, "message");
  return typeof message === "string" ? message : String(thrown);
}

/** Errors of Node itself are not `instanceof Error` in a vm context, so callers ask for members. */
export function memberOf(value: unknown, name: string): unknown {
  return typeof value === "object" && value !== null ? Reflect.get(value, name) : undefined;
}
