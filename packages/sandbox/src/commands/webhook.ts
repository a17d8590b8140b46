import { Command, Option } from "commander";
import { exitCodes, UsageError, type CommandIo, type ExitCode } from "../command-io.ts";
import {
  buildWebhookRequest,
  tamperedWebhookParts,
  type TamperedWebhookPart,
} from "../delivery/webhook-request.ts";
import { parseExpectedStatuses, parseInteger, readCertificates } from "../payout-input.ts";
import { PayoutSendError } from "../send-error.ts";
import { sendRequest, type OutgoingRequest, type SendOptions } from "../send-request.ts";
import { matchesStatus, type StatusPattern } from "../status.ts";
import { messageOf } from "../thrown.ts";
import { readEnvelope, sampleType, type EnvelopeFlags } from "../webhook-input.ts";
import { formatWebhookReport, webhookReportToJson, type WebhookReport } from "../webhook-report.ts";

interface WebhookFlags extends EnvelopeFlags {
  readonly url: string;
  readonly username: string;
  readonly password: string;
  readonly secret: string;
  readonly tamper?: TamperedWebhookPart | undefined;
  readonly allowHttp?: boolean | undefined;
  readonly timeout: string;
  readonly ca?: string | undefined;
  readonly expect?: string | undefined;
  readonly json?: boolean | undefined;
}

const examples = `
Examples:
  countersign webhook --url https://platform.example/hooks/… --username service --password … --secret …
  countersign webhook --url … --type seller.status_changed --data '{"seller_id":"s1","old_status":"PENDING","new_status":"ACTIVE"}'
  countersign webhook --url … --file envelope.json --tamper signature --json

Exit codes:
  0  answered as expected   1  answered otherwise   2  usage   3  no answer
  Expected is 2xx; with --tamper 401 or 404.
`;

/** `countersign webhook`: signs one webhook as the lending service would, sends it once, and judges the answer. */
export function webhookCommand(io: CommandIo, finish: (code: ExitCode) => void): Command {
  const command = new Command("webhook")
    .description("sign one webhook and send it, as it should be or in one way that must be refused")
    .requiredOption("--url <url>", "webhook endpoint; its path is sent exactly as given");
  addCredentialOptions(command);
  addEnvelopeOptions(command);
  return command
    .addOption(new Option("--tamper <part>", "change one part after signing").choices(tamperedWebhookParts))
    .option("--timeout <ms>", "time for the whole exchange", "30000")
    .option("--ca <file>", "issuer certificates (PEM) of the endpoint")
    .option("--allow-http", "send to an http URL, which gives the password away to the network")
    .option("--expect <statuses>", "statuses that count as expected, such as 200,409 or 2xx")
    .option("--json", "print one JSON document instead of text")
    .addHelpText("after", examples)
    .action(async (flags: WebhookFlags) => {
      const report = await runWebhook(flags);
      io.writeOut(
        flags.json === true ? webhookReportToJson(report) : formatWebhookReport(report, io.colours),
      );
      if (report.answer === undefined) finish(exitCodes.unreachable);
      else finish(report.asExpected ? exitCodes.asExpected : exitCodes.otherwise);
    });
}

function addCredentialOptions(command: Command): void {
  const options = [
    new Option("--username <name>", "username of basic authentication").env("WEBHOOK_USERNAME"),
    new Option("--password <password>", "password of basic authentication").env("WEBHOOK_PASSWORD"),
    new Option("--secret <secret>", "secret of the payload signature").env("WEBHOOK_SECRET"),
  ];
  for (const option of options) command.addOption(option.makeOptionMandatory());
}

function addEnvelopeOptions(command: Command): void {
  const options = [
    new Option("--type <type>", "type of the event").default(sampleType),
    new Option("--data <json>", "data of the event (default: a sample of the type)"),
    new Option("--event-id <id>", "event_id (default: a fresh one)"),
    new Option("--webhook-id <id>", "webhook_id (default: a fresh one)"),
    new Option("--timestamp <text>", "timestamp of webhook and event (default: now)"),
  ];
  command.option("--file <file>", "envelope, sent byte for byte (default: one with a single event)");
  for (const option of options) command.addOption(option.conflicts("file"));
}

async function runWebhook(flags: WebhookFlags): Promise<WebhookReport> {
  const request = requestOf(flags);
  const expected = expectedOf(flags);
  const report = {
    variant: flags.tamper === undefined ? ("plain" as const) : (`tamper-${flags.tamper}` as const),
    request,
    expected,
  };
  try {
    const answer = await sendRequest(request, sendOptionsOf(flags));
    return { ...report, answer, error: undefined, asExpected: matchesStatus(answer.status, expected) };
  } catch (error) {
    if (!(error instanceof PayoutSendError)) throw error;
    return { ...report, answer: undefined, error, asExpected: false };
  }
}

function requestOf(flags: WebhookFlags): OutgoingRequest {
  const { url, username, password, secret, tamper, allowHttp } = flags;
  const body = readEnvelope(flags);
  try {
    return buildWebhookRequest({ url, username, password, secret, tamper, allowHttp, body });
  } catch (error) {
    // Before anything is sent, all that can be wrong is what the command line said.
    throw new UsageError(messageOf(error), { cause: error });
  }
}

function sendOptionsOf({ timeout, ca }: WebhookFlags): SendOptions {
  return {
    timeoutMs: parseInteger("--timeout", timeout, { min: 1, max: 600_000 }),
    ca: ca === undefined ? undefined : readCertificates(ca),
  };
}

function expectedOf({ expect, tamper }: WebhookFlags): readonly StatusPattern[] {
  if (expect !== undefined) return parseExpectedStatuses(expect);
  return tamper === undefined ? ["2xx"] : ["401", "404"];
}
