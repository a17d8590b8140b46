import { readFileSync } from "node:fs";

/** What the page of codes says of one, without the network. */
interface CodeText {
  /** Such as `status 503`, or `notice`. */
  readonly kind: string;
  /** Names of factories. */
  readonly by: string;
  /** Names of code stand in backticks. */
  readonly cause: string;
  readonly remedy: string;
}

let known: ReadonlyMap<string, CodeText> | undefined;

/** All codes of these packages, in the order of the page. */
export function allCodes(): ReadonlyMap<string, CodeText> {
  return (known ??= readCodes());
}

// Made from the page of codes by `npm run docs:markdown`.
function readCodes(): ReadonlyMap<string, CodeText> {
  const made = readFileSync(new URL("../../codes.json", import.meta.url), "utf8");
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- a file of this package
  return new Map(Object.entries(JSON.parse(made) as Readonly<Record<string, CodeText>>));
}
