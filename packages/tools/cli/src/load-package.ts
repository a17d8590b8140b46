import { codeOf, messageOf, UsageError } from "./command-io.ts";

/** Imports a module that needs packages of an engine. Throws a UsageError that says how to install them when one is missing. */
export function loadDriver<T>(needs: readonly string[], load: () => Promise<T>): Promise<T> {
  return loadPackage(needs, load, (missing) => {
    return `--store-url: this engine needs the package ${missing}; run npm install ${needs.join(" ")}`;
  });
}

const devtools = "@countersign/devtools";

/** Imports a module of `playing/`; all need the sandbox of devtools. Throws a UsageError that says how to install it. */
export function loadPlaying<T>(command: string, load: () => Promise<T>): Promise<T> {
  const message = `${command} needs the package ${devtools}, which plays the lending service; run npm install --save-dev ${devtools}`;
  return loadPackage([devtools], load, () => message);
}

async function loadPackage<T>(
  needs: readonly string[],
  load: () => Promise<T>,
  says: (missing: string) => string,
): Promise<T> {
  try {
    return await load();
  } catch (error) {
    // The package itself is missing, not one of its dependencies.
    const missing = needs.find((name) => messageOf(error).includes(`'${name}'`));
    if (codeOf(error) !== "ERR_MODULE_NOT_FOUND" || missing === undefined) throw error;
    throw new UsageError(says(missing), { cause: error });
  }
}
