import { Command, Option } from "commander";
import type { CommandIo, Finish } from "../command-io.ts";
import { credentialOptions } from "../input.ts";
import type { CreateFlags, GenerateFlags } from "../playing/endpoints.ts";

const notes = `
Give the API key, the password and the secret by environment variables: the
list of processes shows the flags of a command.

Examples:
  COUNTERSIGN_API_KEY=… countersign endpoint create \\
    --base-url https://api.service.example \\
    --generate --platform-url https://platform.example
  COUNTERSIGN_API_KEY=… WEBHOOK_USERNAME=… WEBHOOK_PASSWORD=… \\
    WEBHOOK_SECRET=… countersign endpoint create \\
    --base-url http://127.0.0.1:4000 --url http://127.0.0.1:3000/hooks/…

A service with an issuer of its own: NODE_EXTRA_CA_CERTS names the issuer's
file.

Exit codes:
  0  created   1  answered otherwise   2  usage
  3  no answer: the endpoint may exist
`;

export function endpointCommand(io: CommandIo, finish: Finish): Command {
  return new Command("endpoint")
    .description("webhook endpoints at the service, or at a sandbox")
    .addCommand(createCommand(io, finish))
    .addCommand(generateCommand(io));
}

const generateNotes = `
Sends nothing. Customer support configures the endpoint by the form; for the
service's API there is: countersign endpoint create --generate

Example:
  countersign endpoint generate --platform-url https://platform.example

Exit codes:
  0  generated   2  usage
`;

function generateCommand(io: CommandIo): Command {
  return new Command("generate")
    .description("make up a webhook endpoint, and the form for customer support")
    .requiredOption("--platform-url <url>", "https address of the platform, before the path")
    .option("--json", "print one JSON document instead of text")
    .addHelpText("after", generateNotes)
    .action(async (flags: GenerateFlags) => {
      const { makeUpEndpoint } = await import("../playing/endpoints.ts");
      makeUpEndpoint(flags, io);
    });
}

function createCommand(io: CommandIo, finish: Finish): Command {
  const command = new Command("create")
    .description("register a webhook endpoint through the service's API")
    .requiredOption("--base-url <url>", "address of the service's API, or of a sandbox")
    .addOption(
      new Option("--api-key <key>", "the X-API-KEY").env("COUNTERSIGN_API_KEY").makeOptionMandatory(),
    )
    .option("--url <url>", "where the service is to send webhooks");
  for (const option of credentialOptions()) command.addOption(option);
  return command
    .addOption(
      new Option("--generate", "make up a path, a username, a password and a secret; shown once").conflicts([
        "url",
        "username",
        "password",
        "secret",
      ]),
    )
    .option("--platform-url <url>", "with --generate: address of the platform, before the path")
    .option("--timeout <ms>", "time for each request", "10000")
    .option("--retries <n>", "further requests after a failure that may pass", "3")
    .option("--json", "print one JSON document instead of text")
    .addHelpText("after", notes)
    .action(async (flags: CreateFlags) => {
      const { createEndpoint } = await import("../playing/endpoints.ts");
      await createEndpoint(flags, { io, finish });
    });
}
