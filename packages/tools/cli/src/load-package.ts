import { UsageError } from "./command-io.ts";
import { codeOf, messageOf } from "./thrown.ts";

/** Imports what only some users have installed. Throws a UsageError with `message` where the package `name` is missing. */
export async function loadPackage<T>(name: string, message: string, load: () => Promise<T>): Promise<T> {
  try {
    return await load();
  } catch (error) {
    // Of the package itself, not of one that it lacks.
    if (codeOf(error) !== "ERR_MODULE_NOT_FOUND" || !messageOf(error).includes(`'${name}'`)) throw error;
    throw new UsageError(message, { cause: error });
  }
}

const sandbox = "@countersign/sandbox";

/** Imports a module of `playing/`, all of which need the sandbox. Throws a UsageError that says how to install it. */
export function loadPlaying<T>(command: string, load: () => Promise<T>): Promise<T> {
  const message = `${command} needs the package ${sandbox}, which plays the lending service; run npm install --save-dev ${sandbox}`;
  return loadPackage(sandbox, message, load);
}
