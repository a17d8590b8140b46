import { randomUUID } from "node:crypto";
import { buildWebhookRequest, PayoutSendError, sendRequest } from "@countersign/devtools/sandbox";
import {
  formatTimestamp,
  jsonTexts,
  sampleEventData,
  statuses,
  tamperedWebhookTexts,
} from "@countersign/devtools/internal";
import type { CommandIo, ExitCode, Texts } from "../command-io.ts";
import { exitCodes, messageOf, UsageError } from "../command-io.ts";
import { assertHttpAllowed, readNamedFile } from "../input.ts";
import { explainWebhook } from "./explain-sent.ts";
import { webhookJson, webhookText, type OutgoingRequest, type Spoilt, type WebhookReport } from "./report.ts";
import {
  readExpected,
  readForwardedFor,
  readHeaders,
  sendOptionsOf,
  type TransportFlags,
} from "./transport.ts";

/** The envelope's flags are not checked: wrong values are worth sending too. */
export interface WebhookFlags
  extends TransportFlags, Texts<"file" | "data" | "eventId" | "webhookId" | "timestamp"> {
  readonly type: string;
  readonly username: string;
  readonly password: string;
  readonly secret: string;
  readonly tamper?: Parameters<typeof buildWebhookRequest>[0]["tamper"];
  readonly duplicate?: true | undefined;
}

function hiddenReason({ url, forwardedFor }: WebhookFlags): string {
  const lines = [
    "",
    "A 404 does not say why: no endpoint at this path, or a refusal of one. The",
    "platform's log has the code of a refusal. What it means:",
    "  countersign code <code>",
  ];
  if (/^http:/i.test(url) && forwardedFor === undefined)
    lines.push(
      "If it is https-required, send the webhook as the proxy that ends TLS, which the",
      "platform has to trust (trust proxy):",
      "  --forwarded-for 192.0.2.10",
    );
  return `${lines.join("\n")}\n`;
}

/** Sends once, or the same bytes twice. Throws a UsageError before anything is sent. */
export async function runWebhook(flags: WebhookFlags, io: CommandIo): Promise<ExitCode> {
  const { tamper, duplicate, json } = flags;
  const request = requestOf(flags);
  const plain = tamper === undefined ? "plain" : `tamper-${tamper}`;
  const spoilt = await spoiltOf(flags, request);
  const { colours } = io;
  for (const name of duplicate === true ? [plain, "duplicate"] : [plain]) {
    // oxlint-disable-next-line no-await-in-loop -- the service repeats what was answered
    const report = await send(request, name, flags);
    io.writeOut(json === true ? webhookJson(report, spoilt) : webhookText(report, { colours, spoilt }));
    if (report.answer === undefined) return exitCodes.unreachable;
    if (!report.asExpected) {
      if (json !== true && report.answer.status === 404) io.writeOut(hiddenReason(flags));
      return exitCodes.otherwise;
    }
  }
  return exitCodes.asExpected;
}

async function spoiltOf(flags: WebhookFlags, request: OutgoingRequest): Promise<Spoilt | undefined> {
  const { tamper } = flags;
  if (tamper === undefined) return undefined;
  return { sends: tamperedWebhookTexts[tamper], explained: await explainWebhook(request, flags) };
}

async function send(request: OutgoingRequest, name: string, flags: WebhookFlags): Promise<WebhookReport> {
  const expected = readExpected(flags) ?? (flags.tamper === undefined ? ["2xx"] : ["401", "404"]);
  const report = { name, request, expected };
  try {
    const answer = await sendRequest(request, sendOptionsOf(flags));
    return { ...report, answer, error: undefined, asExpected: statuses.matches(answer.status, expected) };
  } catch (error) {
    if (!(error instanceof PayoutSendError)) throw error;
    return { ...report, answer: undefined, error, asExpected: false };
  }
}

function requestOf(flags: WebhookFlags): OutgoingRequest {
  const { url, username, password, secret, tamper, allowHttp } = flags;
  assertHttpAllowed("--url", url, allowHttp);
  const endpoint = { url, username, password, secret, allowHttp: true };
  const body = readEnvelope(flags);
  const further = readHeaders(flags);
  const forwardedFor = readForwardedFor(flags);
  try {
    const request = buildWebhookRequest({ ...endpoint, body, forwardedFor, tamper });
    return { ...request, headers: { ...request.headers, ...further } };
  } catch (error) {
    // Before anything is sent, only the command line can be wrong.
    throw new UsageError(messageOf(error), { cause: error });
  }
}

/** The file's bytes, or an envelope with one event. Throws a UsageError. */
function readEnvelope({ file, type, data, eventId, webhookId, timestamp }: WebhookFlags): Buffer {
  if (file !== undefined) return readNamedFile("--file", file);
  // Finer than milliseconds, so that consecutive commands have different times.
  const now = BigInt(Date.now()) * 1_000_000n + (process.hrtime.bigint() % 1_000_000n);
  const when = timestamp ?? formatTimestamp(now);
  const event = { event_id: eventId ?? randomUUID(), timestamp: when, type, data: undefined };
  if (data !== undefined) parseData(data);
  const text = data ?? JSON.stringify(sampleDataOf(type));
  const events = `[${jsonTexts.write(event, { data: text })}]`;
  const envelope = { webhook_id: webhookId ?? randomUUID(), timestamp: when, events };
  return Buffer.from(jsonTexts.write(envelope, { events }), "utf8");
}

/** Empty for an unknown type. */
export function sampleDataOf(type: string): unknown {
  return sampleEventData.get(type) ?? {};
}

export function parseData(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new UsageError("--data: is not JSON", { cause: error });
  }
}
