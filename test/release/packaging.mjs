// What publint and "are the types wrong" find in a tarball.
import { readFileSync } from "node:fs";
import { checkPackage, createPackageFromTarballData } from "@arethetypeswrong/core";
import { problemKindInfo } from "@arethetypeswrong/core/problems";
import { publint } from "publint";
import { formatMessage } from "publint/utils";

// The packages are ES modules alone: require() of them is Node's, and check:require tries it.
const expected = new Set(["CJSResolvesToESM"]);

/** A line for each fault of a packed package. */
export async function packagingFaults(tarball) {
  const bytes = new Uint8Array(readFileSync(tarball));
  const { messages, pkg } = await publint({ pack: { tarball: bytes.buffer }, strict: true });
  const { problems = [] } = await checkPackage(createPackageFromTarballData(bytes));
  const wrong = problems.filter(({ kind }) => !expected.has(kind));
  return [
    ...messages.map((message) => formatMessage(message, pkg, { color: false })),
    ...wrong.map(({ kind, ...where }) => `${problemKindInfo[kind].title}: ${JSON.stringify(where)}`),
  ];
}
