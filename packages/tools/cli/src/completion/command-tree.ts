import type { Argument, Command, Option } from "commander";

/** What can stand behind a word of a command line. */
export type Completion =
  | { readonly kind: "words"; readonly words: readonly string[] }
  | { readonly kind: "file" | "text" };

/** A word and what it does. */
interface Word {
  readonly word: string;
  readonly description: string;
}

/** A flag; `value` is undefined for one that takes none. */
interface Flag extends Word {
  readonly value: Completion | undefined;
}

/** One command, `countersign` itself among them. */
export interface CommandNode {
  /** `countersign keys held`. */
  readonly path: string;
  readonly subcommands: readonly Word[];
  readonly flags: readonly Flag[];
  /** What its argument can be; undefined for a command without. */
  readonly argument: Completion | undefined;
}

/** Every command below and with `command`. `suggested` are the words of arguments that may be others too, by the command's name. */
export function commandTree(
  command: Command,
  suggested: ReadonlyMap<string, readonly string[]>,
  path: string = command.name(),
): readonly CommandNode[] {
  const [argument] = command.registeredArguments;
  const node: CommandNode = {
    path,
    subcommands: command.commands.map((subcommand) => ({
      word: subcommand.name(),
      description: subcommand.description(),
    })),
    flags: [
      ...command.options.map((option) => flagOf(option)),
      { word: "--help", description: "display help for command", value: undefined },
    ],
    argument: argument === undefined ? undefined : completionOf(argument, suggested.get(command.name())),
  };
  const below = command.commands.map((subcommand) =>
    commandTree(subcommand, suggested, `${path} ${subcommand.name()}`),
  );
  return [node, ...below.flat()];
}

function flagOf(option: Option): Flag {
  const { long, flags, description, required, optional, argChoices } = option;
  const value = wordsOr(argChoices, /<(?:file|directory)>/.test(flags));
  return { word: long ?? flags, description, value: required || optional ? value : undefined };
}

function completionOf(argument: Argument, suggested: readonly string[] | undefined): Completion {
  return wordsOr(argument.argChoices ?? suggested, argument.name() === "file");
}

function wordsOr(words: readonly string[] | undefined, isFile: boolean): Completion {
  if (words !== undefined) return { kind: "words", words };
  return { kind: isFile ? "file" : "text" };
}
