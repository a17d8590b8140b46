import { UsageError } from "../command-io.ts";
import { codeOf, messageOf } from "../thrown.ts";

/** Imports a driver that only some users need. Throws a UsageError that says how to install it. */
export async function loadDriver<T>(name: string, load: () => Promise<T>): Promise<T> {
  try {
    return await load();
  } catch (error) {
    // Of the driver itself, not of a package that it lacks.
    if (codeOf(error) !== "ERR_MODULE_NOT_FOUND" || !messageOf(error).includes(`'${name}'`)) throw error;
    const message = `--store-url: this engine needs the package ${name}; run npm install ${name}`;
    throw new UsageError(message, { cause: error });
  }
}
