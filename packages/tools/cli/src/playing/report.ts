import { STATUS_CODES } from "node:http";
import type { PayoutSendError } from "@countersign/devtools/sandbox";
import type { sendRequest } from "@countersign/devtools/sandbox";
import { statuses, type payoutPlans } from "@countersign/devtools/internal";
import type { Explanation } from "../explain/index.ts";
import { bodyLines, createPaint, jsonDocument, printable, wrapped, type Paint } from "../output.ts";
import { memberRows, rowLines, type Row } from "./sent-members.ts";

type PayoutAnswer = Awaited<ReturnType<typeof sendRequest>>;

/** `name` is the variant. */
type PayoutReport = Awaited<ReturnType<typeof payoutPlans.run>>;
type PayoutOutcome = PayoutReport["outcomes"][number];

/** A request that the sandbox can send. */
export type OutgoingRequest = Parameters<typeof sendRequest>[0];

export type WebhookReport = Omit<PayoutOutcome, "request"> & { readonly request: OutgoingRequest };

/** What is wrong with a request on purpose, in plain words, and what `countersign explain` says of it. */
export interface Spoilt {
  readonly sends: string;
  readonly explained: Explanation;
}

interface TextInit {
  readonly colours: boolean;
  readonly spoilt: Spoilt | undefined;
}

/** The instruction is shown once: all requests of a report send the same one. */
export function payoutText(
  { outcomes, variant, asExpected, reached }: PayoutReport,
  { colours, spoilt }: TextInit,
): string {
  const paint = createPaint(colours);
  const lines = outcomes.flatMap((outcome, index) => {
    const { signature, bodyBytes } = outcome.request;
    const rows: readonly Row[] = [
      ...(index === 0 ? [...memberRows(bodyBytes.toString("utf8")), ...spoiltRows(spoilt)] : []),
      ["keyid", printable(signature.keyid)],
      ["nonce", signature.nonce],
      ["created", timeOf(signature.created)],
      ["expires", timeOf(signature.expires)],
    ];
    return [...outcomeLines(outcome, rowLines(rows), paint), ...answerLines(outcome), ""];
  });
  const judged = `${variant}: ${verdict(asExpected, reached, paint)}`;
  return `${[...lines, ...explainedLines(spoilt), judged].join("\n")}\n`;
}

function spoiltRows(spoilt: Spoilt | undefined): readonly Row[] {
  return spoilt === undefined ? [] : [["spoilt", spoilt.sends]];
}

const textColumns = 80;

function explainedLines(spoilt: Spoilt | undefined): string[] {
  if (spoilt === undefined) return [];
  const { what, sentence } = spoilt.explained;
  return [
    `countersign explain calls it ${what}:`,
    ...wrapped(printable(sentence), textColumns).trimEnd().split("\n"),
    "",
  ];
}

function answerLines({ answer }: PayoutOutcome): string[] {
  if (answer === undefined) return [];
  const retryAfter = answer.headers["retry-after"];
  return [
    `  ${statuses.explain(answer.status, answer.body)}`,
    ...(retryAfter === undefined ? [] : [`  Retry-After: ${printable(retryAfter)}`]),
    ...bodyLines(answer.body, answer.bodyTruncated),
  ];
}

/** One JSON document, without anything of the private key. */
export function payoutJson(report: PayoutReport, spoilt: Spoilt | undefined): string {
  const outcomes = report.outcomes.map(({ name, request, expected, asExpected, answer, error }) => ({
    name,
    request: {
      method: request.method,
      url: request.url,
      target: request.target,
      headers: request.headers,
      body: request.bodyBytes.toString("utf8"),
    },
    signature: request.signature,
    answer:
      answer === undefined ? null : { ...answer, meaning: statuses.explain(answer.status, answer.body) },
    error: errorJson(error),
    expected,
    asExpected,
  }));
  return jsonDocument({ ...report, outcomes, explained: explainedJson(spoilt) });
}

/** The answer's body is not shown: the service looks at the status alone. */
export function webhookText(report: WebhookReport, { colours, spoilt }: TextInit): string {
  const { name, request, answer, asExpected } = report;
  const paint = createPaint(colours);
  const rows: readonly Row[] = [
    ...memberRows(request.bodyBytes.toString("utf8")),
    ...spoiltRows(spoilt),
    ["body", `${request.bodyBytes.length} bytes`],
  ];
  const lines = outcomeLines(report, rowLines(rows), paint);
  if (answer !== undefined) lines.push(`  ${meaningOf(answer)}`);
  const judged = verdict(asExpected, answer !== undefined, paint);
  return `${[...lines, "", ...explainedLines(spoilt), `${name}: ${judged}`].join("\n")}\n`;
}

/** One JSON document, without credentials and signature. */
export function webhookJson(report: WebhookReport, spoilt: Spoilt | undefined): string {
  const { name, request, answer, error, expected, asExpected } = report;
  return jsonDocument({
    variant: name,
    asExpected,
    reached: answer !== undefined,
    request: { method: request.method, url: request.url, body: request.bodyBytes.toString("utf8") },
    answer:
      answer === undefined
        ? null
        : { status: answer.status, durationMs: answer.durationMs, meaning: meaningOf(answer) },
    error: errorJson(error),
    expected,
    explained: explainedJson(spoilt),
  });
}

function explainedJson(spoilt: Spoilt | undefined): object | null {
  if (spoilt === undefined) return null;
  const { what, sentence } = spoilt.explained;
  return { what, sentence };
}

function meaningOf({ status }: PayoutAnswer): string {
  return statuses.matches(status, ["2xx"])
    ? "delivered: every event is done"
    : "not delivered: the service would send the same bytes again, for up to a day";
}

function outcomeLines(outcome: WebhookReport, sent: readonly string[], paint: Paint): string[] {
  const { name, request, expected, asExpected, answer, error } = outcome;
  const { method, target, url } = request;
  const head = `${paint("bold", `${method} ${printable(target)}`)} to ${new URL(url).host} (${name})`;
  if (answer === undefined)
    return [head, ...sent, `  ${paint("red", printable(error?.message ?? "no answer"))}`];
  const status = `${answer.status} ${STATUS_CODES[answer.status] ?? ""}, expected ${expected.join(" or ")}`;
  const duration = `(${answer.durationMs.toFixed(0)} ms)`;
  return [head, ...sent, `${paint(asExpected ? "green" : "red", status)} ${duration}`];
}

function verdict(asExpected: boolean, reached: boolean, paint: Paint): string {
  if (asExpected) return paint("green", "as expected");
  return paint("red", reached ? "not as expected" : "no answer");
}

function errorJson(error: PayoutSendError | undefined): object | null {
  return error === undefined ? null : { code: error.code, message: error.message };
}

function timeOf(seconds: number): string {
  return `${seconds} (${new Date(seconds * 1000).toISOString()})`;
}
