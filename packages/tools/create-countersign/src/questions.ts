import type { Readable, Writable } from "node:stream";
import { cancel, intro, isCancel, select, text } from "@clack/prompts";
import { choices, defaultFolder, isChoice, type Choices, type Question } from "./choices.ts";
import type { Flags } from "./flags.ts";
import { folderNameFault, printable } from "./terminal-text.ts";
import { folderFault } from "./write-project.ts";

/** What a project needs to be written. */
export interface Answers extends Choices {
  readonly folder: string;
}

/** Asks for what the flags leave open; undefined when whoever is asked does not want any more. */
export type Ask = (flags: Flags, resolve: (folder: string) => string) => Promise<Answers | undefined>;

/** Asks at a terminal. */
export function askAt(input: Readable, output: Writable): Ask {
  const streams = { input, output };
  return async (flags, resolve) => {
    intro("A platform that receives payouts and webhooks, each handled once", { output });
    try {
      return {
        folder: flags.folder ?? (await askFolder(streams, resolve)),
        framework: flags.framework ?? (await askChoice(streams, "framework", "Which framework?")),
        store:
          flags.store ?? (await askChoice(streams, "store", "Where are keys, nonces and payments kept?")),
      };
    } catch (error) {
      if (!(error instanceof CancelledError)) throw error;
      cancel("Nothing was written.", { output });
      return undefined;
    }
  };
}

class CancelledError extends Error {
  override readonly name: string = "CancelledError";
}

interface Streams {
  readonly input: Readable;
  readonly output: Writable;
}

async function askFolder(streams: Streams, resolve: (folder: string) => string): Promise<string> {
  const answer = await text({
    ...streams,
    message: "Which folder?",
    placeholder: defaultFolder,
    defaultValue: defaultFolder,
    // What is in it has no place between the questions.
    validate: (folder = "") =>
      folderNameFault(folder) ?? shownFault(resolve(folder === "" ? defaultFolder : folder)),
  });
  if (isCancel(answer)) throw new CancelledError();
  return answer;
}

function shownFault(folder: string): string | undefined {
  const [fault] = folderFault(folder)?.split(":\n", 1) ?? [];
  return fault === undefined ? undefined : printable(fault);
}

async function askChoice<Asked extends Question>(
  streams: Streams,
  question: Asked,
  message: string,
): Promise<Choices[Asked]> {
  const options = Object.entries<string>(choices[question]).map(([value, label]) => ({ value, label }));
  const answer = await select({ ...streams, message, options });
  if (!isChoice(question, answer)) throw new CancelledError();
  return answer;
}
