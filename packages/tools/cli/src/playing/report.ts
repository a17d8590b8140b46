import { STATUS_CODES } from "node:http";
import type { PayoutSendError } from "@countersign/devtools/sandbox";
import type { sendRequest } from "@countersign/devtools/sandbox";
import { statuses, type payoutPlans } from "@countersign/devtools/internal";
import { memberOf } from "../command-io.ts";
import { bodyLines, createPaint, jsonDocument, printable, type Paint } from "../output.ts";

type PayoutAnswer = Awaited<ReturnType<typeof sendRequest>>;

/** `name` is the variant. */
type PayoutReport = Awaited<ReturnType<typeof payoutPlans.run>>;
type PayoutOutcome = PayoutReport["outcomes"][number];

/** A request that the sandbox can send. */
export type OutgoingRequest = Parameters<typeof sendRequest>[0];

export type WebhookReport = Omit<PayoutOutcome, "request"> & { readonly request: OutgoingRequest };

export function payoutText({ outcomes, variant, asExpected, reached }: PayoutReport, colours: boolean) {
  const paint = createPaint(colours);
  const lines = outcomes.flatMap((outcome) => {
    const { signature, bodyBytes } = outcome.request;
    const sent = [
      ...idempotencyKeyLine(bodyBytes),
      `  keyid    ${printable(signature.keyid)}`,
      `  nonce    ${signature.nonce}`,
      `  created  ${timeOf(signature.created)}`,
      `  expires  ${timeOf(signature.expires)}`,
    ];
    return [...outcomeLines(outcome, sent, paint), ...answerLines(outcome), ""];
  });
  return `${[...lines, `${variant}: ${verdict(asExpected, reached, paint)}`].join("\n")}\n`;
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
export function payoutJson(report: PayoutReport): string {
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
  return jsonDocument({ ...report, outcomes });
}

/** The answer's body is not shown: the service looks at the status alone. */
export function webhookText(report: WebhookReport, colours: boolean): string {
  const { name, request, answer, asExpected } = report;
  const paint = createPaint(colours);
  const lines = outcomeLines(report, [`  ${request.bodyBytes.length} bytes`], paint);
  if (answer !== undefined) lines.push(`  ${meaningOf(answer)}`);
  const judged = verdict(asExpected, answer !== undefined, paint);
  return `${[...lines, "", `${name}: ${judged}`].join("\n")}\n`;
}

/** One JSON document, without credentials and signature. */
export function webhookJson({ name, request, answer, error, expected, asExpected }: WebhookReport): string {
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
  });
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

function idempotencyKeyLine(bodyBytes: Buffer): string[] {
  const key = memberOf(JSON.parse(new TextDecoder().decode(bodyBytes)), "idempotency_key");
  return typeof key === "string" ? [`  key      ${printable(key)}`] : [];
}

function timeOf(seconds: number): string {
  return `${seconds} (${new Date(seconds * 1000).toISOString()})`;
}
