import { loadPackage } from "../load-package.ts";

/** Imports a package that only some users need. Throws a UsageError that says how to install it, and what goes with it. */
export function loadDriver<T>(name: string, load: () => Promise<T>, install: string = name): Promise<T> {
  const message = `--store-url: this engine needs the package ${name}; run npm install ${install}`;
  return loadPackage(name, message, load);
}
