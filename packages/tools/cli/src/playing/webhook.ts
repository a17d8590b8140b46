import { buildWebhookRequest, PayoutSendError, sendRequest } from "@countersign/sandbox";
import { matchesStatus, type OutgoingRequest, type TamperedWebhookPart } from "@countersign/sandbox/protocol";
import { exitCodes, UsageError, type CommandIo, type ExitCode } from "../command-io.ts";
import { assertHttpAllowed } from "../plain-http.ts";
import { messageOf } from "../thrown.ts";
import { readExpected, readHeaders, sendOptionsOf, type TransportFlags } from "./payout-input.ts";
import { readEnvelope, type EnvelopeFlags } from "./webhook-input.ts";
import { formatWebhookReport, webhookReportToJson, type WebhookReport } from "./webhook-report.ts";

/** The flags of `countersign webhook`. */
export interface WebhookFlags extends EnvelopeFlags, TransportFlags {
  readonly username: string;
  readonly password: string;
  readonly secret: string;
  readonly tamper?: TamperedWebhookPart | undefined;
}

/** Sends what the flags say, once, and reports what became of it. Throws a UsageError before anything is sent. */
export async function runWebhook(flags: WebhookFlags, io: CommandIo): Promise<ExitCode> {
  const report = await sendOnce(flags);
  io.writeOut(flags.json === true ? webhookReportToJson(report) : formatWebhookReport(report, io.colours));
  if (report.answer === undefined) return exitCodes.unreachable;
  return report.asExpected ? exitCodes.asExpected : exitCodes.otherwise;
}

async function sendOnce(flags: WebhookFlags): Promise<WebhookReport> {
  const request = requestOf(flags);
  const expected = readExpected(flags) ?? (flags.tamper === undefined ? ["2xx"] : ["401", "404"]);
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
  assertHttpAllowed("--url", url, allowHttp);
  const body = readEnvelope(flags);
  const further = readHeaders(flags);
  try {
    const request = buildWebhookRequest({ url, username, password, secret, tamper, allowHttp: true, body });
    return { ...request, headers: { ...request.headers, ...further } };
  } catch (error) {
    // Before anything is sent, all that can be wrong is what the command line said.
    throw new UsageError(messageOf(error), { cause: error });
  }
}
