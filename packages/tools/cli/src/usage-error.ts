import { UsageError } from "./command-io.ts";
import { messageOf } from "./thrown.ts";

/** The message of a TypeError about an option of the library, in the words of the command line. */
export function usageErrorOf(error: unknown): UsageError {
  const message = messageOf(error)
    .replace(/^\w+: (?:option (\w+))?/, (_prefix, option: string | undefined) => flagOf(option))
    .replace("dangerouslyAllowHttp: true", "--allow-http");
  return new UsageError(message, { cause: error });
}

const flagsByOption: ReadonlyMap<string, string> = new Map([
  ["baseUrl", "--base-url"],
  ["apiKey", "--api-key"],
  ["host", "--host"],
  ["database", "--db"],
  ["url", "--url"],
  ["authUsername", "--username"],
  ["authPassword", "--password"],
  ["signatureSecret", "--secret"],
  ["schema", "--schema"],
  ["table", "--table"],
  ["prefix", "--prefix"],
  ["origin", "--origin"],
  ["pathPrefix", "--path-prefix"],
  ["requiredComponents", "--components"],
  ["scheme", "--webhook"],
  ["signerBase", "--signer-base"],
]);

function flagOf(option = ""): string {
  return flagsByOption.get(option) ?? option;
}
