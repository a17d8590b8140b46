import { codeOf, messageOf, UsageError } from "./command-io.ts";

/** Imports a module that needs packages of an engine. Throws a UsageError that says how to install them when one is missing. */
export function loadDriver<T>(needs: readonly string[], load: () => Promise<T>): Promise<T> {
  return loadPackage(needs, load, (missing) => {
    return `--store-url: this engine needs the package ${missing}; run npm install ${needs.join(" ")}`;
  });
}

/** A driver by the name of its package. */
export interface Driver<T> {
  readonly name: string;
  readonly load: () => Promise<T>;
}

/** Loads the first of the drivers that is installed. Throws a UsageError that names all of them when none is. */
export async function loadAnyDriver<T>(drivers: readonly Driver<T>[]): Promise<T> {
  for (const { name, load } of drivers) {
    try {
      // oxlint-disable-next-line no-await-in-loop -- the next one only when this one is missing
      return await load();
    } catch (error) {
      if (missingOf([name], error) === undefined) throw error;
    }
  }
  const names = drivers.map(({ name }) => name);
  const message = `--store-url: this engine needs the package ${names.join(" or ")}; run npm install ${names.join(", or npm install ")}`;
  throw new UsageError(message);
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
    const missing = missingOf(needs, error);
    if (missing === undefined) throw error;
    throw new UsageError(says(missing), { cause: error });
  }
}

/** The package that is missing itself, not one of its dependencies. */
function missingOf(needs: readonly string[], error: unknown): string | undefined {
  if (codeOf(error) !== "ERR_MODULE_NOT_FOUND") return undefined;
  return needs.find((name) => messageOf(error).includes(`'${name}'`));
}
