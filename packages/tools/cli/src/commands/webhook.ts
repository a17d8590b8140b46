import { Command, Option } from "commander";
import type { CommandIo, Finish } from "../command-io.ts";
import { allowHttpOption, collect, credentialOptions, forwardedForOption } from "../input.ts";
import { loadPlaying } from "../load-package.ts";
import { sampleTexts } from "../sample-texts.ts";
import type { WebhookFlags } from "../playing/webhook.ts";

// Importing the sandbox's own list would load it for every command line.
const tampered = ["body", "signature", "password", "body-re-serialised"] satisfies WebhookFlags["tamper"][];

const examples = `
${sampleTexts}
With --tamper, body and signature are changed after signing, the password is a
wrong one, and with body-re-serialised the body is parsed and serialised again
after signing. What countersign explain says of it is printed with the answer.

Give the password and the secret by environment variables: the list of
processes shows the flags of a command.

Examples:
  WEBHOOK_USERNAME=service WEBHOOK_PASSWORD=… WEBHOOK_SECRET=… \\
    countersign webhook --url https://platform.example/hooks/…
  countersign webhook --url … --type seller.status_changed --data \\
    '{"seller_id":"s1","old_status":"PENDING","new_status":"ACTIVE"}'
  countersign webhook --url … --file envelope.json --tamper signature --json

Exit codes:
  0  answered as expected   1  answered otherwise   2  usage   3  no answer
  Expected is 2xx; with --tamper 401 or 404.
`;

export function webhookCommand(io: CommandIo, finish: Finish): Command {
  const command = new Command("webhook")
    .description("sign one webhook and send it, as it should be or in one way that must be refused")
    .requiredOption("--url <url>", "webhook endpoint; its path is sent exactly as given");
  for (const option of credentialOptions()) command.addOption(option.makeOptionMandatory());
  addEnvelopeOptions(command);
  return command
    .addOption(new Option("--tamper <part>", "spoil one part of the signed request").choices(tampered))
    .addOption(
      new Option("--duplicate", "send the same bytes twice: the platform handles each event once").conflicts(
        "tamper",
      ),
    )
    .addOption(forwardedForOption())
    .option("--header <field>", "further header field 'name: value'; repeatable", collect)
    .option("--timeout <ms>", "time for the whole exchange", "30000")
    .option("--ca <file>", "issuer certificates (PEM) of the endpoint")
    .addOption(allowHttpOption())
    .option("--expect <statuses>", "statuses that count as expected, such as 200,409 or 2xx")
    .option("--json", "print one JSON document instead of text")
    .addHelpText("after", examples)
    .action(async (flags: WebhookFlags) => {
      const { runWebhook } = await loadPlaying("webhook", () => import("../playing/webhook.ts"));
      finish(await runWebhook(flags, io));
    });
}

function addEnvelopeOptions(command: Command): void {
  const options = [
    new Option("--type <type>", "type of the event").default("buyer.status_changed"),
    new Option("--data <json>", "data of the event (default: the sample below)"),
    new Option("--event-id <id>", "event_id (default: a fresh one)"),
    new Option("--webhook-id <id>", "webhook_id (default: a fresh one)"),
    new Option("--timestamp <text>", "timestamp of webhook and event (default: now)"),
  ];
  command.option("--file <file>", "envelope, sent byte for byte (default: one with a single event)");
  for (const option of options) command.addOption(option.conflicts("file"));
}
