import {
  createServiceClient,
  ServiceClientError,
  type ServiceClientErrorCode,
} from "@countersign/service-client";
import { Command, Option } from "commander";
import { exitCodes, type CommandIo, type ExitCode } from "../command-io.ts";
import { readClientOptions, readEndpoint, type EndpointFlags } from "../endpoint-input.ts";
import { endpointReportToJson, formatEndpointReport, type EndpointReport } from "../endpoint-report.ts";
import { usageErrorOf } from "../usage-error.ts";

interface CreateFlags extends EndpointFlags {
  readonly json?: boolean | undefined;
}

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

/** `countersign endpoint`: the webhook endpoints that the service knows. */
export function endpointCommand(io: CommandIo, finish: (code: ExitCode) => void): Command {
  return new Command("endpoint")
    .description("webhook endpoints at the service, or at a sandbox")
    .addCommand(createCommand(io, finish));
}

function createCommand(io: CommandIo, finish: (code: ExitCode) => void): Command {
  const command = new Command("create")
    .description("register a webhook endpoint through the service's API")
    .requiredOption("--base-url <url>", "address of the service's API, or of a sandbox")
    .addOption(
      new Option("--api-key <key>", "the X-API-KEY").env("COUNTERSIGN_API_KEY").makeOptionMandatory(),
    );
  addEndpointOptions(command);
  return (
    command
      // Of no effect, for scripts that have it: http to this machine needs no flag, and the refusal of any other says what it is for.
      .addOption(new Option("--allow-http").hideHelp())
      .option("--timeout <ms>", "time for each request", "10000")
      .option("--retries <n>", "further requests after a failure that may pass", "3")
      .option("--json", "print one JSON document instead of text")
      .addHelpText("after", notes)
      .action(async (flags: CreateFlags) => {
        const report = await register(flags);
        io.writeOut(
          flags.json === true ? endpointReportToJson(report) : formatEndpointReport(report, io.colours),
        );
        finish(exitCodeOf(report));
      })
  );
}

function addEndpointOptions(command: Command): void {
  const options = [
    new Option("--url <url>", "where the service is to send webhooks"),
    new Option("--username <name>", "username of basic authentication").env("WEBHOOK_USERNAME"),
    new Option("--password <password>", "password of basic authentication").env("WEBHOOK_PASSWORD"),
    new Option("--secret <secret>", "secret of the payload signature").env("WEBHOOK_SECRET"),
  ];
  for (const option of options) command.addOption(option);
  command
    .addOption(
      new Option("--generate", "make up a path, a username, a password and a secret; shown once").conflicts(
        options.map((option) => option.name()),
      ),
    )
    .option("--platform-url <url>", "with --generate: address of the platform, before the path");
}

async function register(flags: CreateFlags): Promise<EndpointReport> {
  const { endpoint, generated } = readEndpoint(flags);
  const clientOptions = readClientOptions(flags);
  const report = { url: endpoint.url, generated };
  try {
    const answer = await createServiceClient(clientOptions).createWebhookEndpoint(endpoint);
    return { ...report, answer, error: undefined };
  } catch (error) {
    if (error instanceof ServiceClientError) return { ...report, answer: undefined, error };
    // Before anything is sent, all that can be wrong is what the command line said.
    if (error instanceof TypeError) throw usageErrorOf(error);
    throw error;
  }
}

const unanswered: ReadonlySet<ServiceClientErrorCode> = new Set([
  "timeout",
  "network",
  "certificate-rejected",
]);

function exitCodeOf({ error }: EndpointReport): ExitCode {
  if (error === undefined) return exitCodes.asExpected;
  return unanswered.has(error.code) ? exitCodes.unreachable : exitCodes.otherwise;
}
