import { Option, type Command } from "commander";
import { allowHttpOption } from "../plain-http.ts";

/** Adds the flags that lead to a sandbox that runs. */
export function addSandboxFlags(command: Command): Command {
  return command
    .requiredOption("--url <url>", "address of the sandbox")
    .addOption(
      new Option("--api-key <key>", "the sandbox's X-API-KEY")
        .env("COUNTERSIGN_API_KEY")
        .makeOptionMandatory(),
    )
    .option("--timeout <ms>", "time for each request", "10000")
    .option("--ca <file>", "issuer certificates (PEM) of an https address")
    .addOption(allowHttpOption());
}

/** Adds the flags of commands that wait until something was delivered. */
export function addWaitingFlags(command: Command): Command {
  return addSandboxFlags(command)
    .option("--wait <ms>", "how long to wait for the first answer of each endpoint", "5000")
    .option("--json", "print one JSON document instead of text");
}
