import { codeOf, messageOf, UsageError } from "./command-io.ts";

/** Imports a store's package or driver. Throws a UsageError that says how to install it. */
export function loadDriver<T>(name: string, load: () => Promise<T>, install: string = name): Promise<T> {
  const message = `--store-url: this engine needs the package ${name}; run npm install ${install}`;
  return loadPackage(name, message, load);
}

const sandbox = "@countersign/sandbox";

/** Imports a module of `playing/`; all need the sandbox. Throws a UsageError that says how to install it. */
export function loadPlaying<T>(command: string, load: () => Promise<T>): Promise<T> {
  const message = `${command} needs the package ${sandbox}, which plays the lending service; run npm install --save-dev ${sandbox}`;
  return loadPackage(sandbox, message, load);
}

async function loadPackage<T>(name: string, message: string, load: () => Promise<T>): Promise<T> {
  try {
    return await load();
  } catch (error) {
    // The package itself is missing, not one of its dependencies.
    if (codeOf(error) !== "ERR_MODULE_NOT_FOUND" || !messageOf(error).includes(`'${name}'`)) throw error;
    throw new UsageError(message, { cause: error });
  }
}
