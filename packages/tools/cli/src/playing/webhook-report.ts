import { STATUS_CODES } from "node:http";
import { matchesStatus, type OutgoingRequest, type TamperedWebhookPart } from "@countersign/sandbox/protocol";
import type { PayoutAnswer, PayoutSendError } from "@countersign/sandbox";
import { jsonDocument } from "../json-output.ts";
import { createPaint } from "../paint.ts";
import { printable } from "../printable.ts";

/** What became of one webhook: an answer, or the error that kept it away. */
export interface WebhookReport {
  readonly variant: "plain" | `tamper-${TamperedWebhookPart}`;
  readonly request: OutgoingRequest;
  readonly answer: PayoutAnswer | undefined;
  readonly error: PayoutSendError | undefined;
  readonly expected: readonly string[];
  readonly asExpected: boolean;
}

/** A report for people. The body of the answer is not shown: the service looks at the status alone. */
export function formatWebhookReport(report: WebhookReport, colours: boolean): string {
  const { variant, request, answer, error, expected, asExpected } = report;
  const paint = createPaint(colours);
  const colour = asExpected ? "green" : "red";
  const answered =
    answer === undefined
      ? [`  ${paint("red", printable(error?.message ?? "no answer"))}`]
      : [
          paint(
            colour,
            `${answer.status} ${STATUS_CODES[answer.status] ?? ""}, expected ${expected.join(" or ")}`,
          ) + ` (${answer.durationMs.toFixed(0)} ms)`,
          `  ${meaningOf(answer.status)}`,
        ];
  return [
    `${paint("bold", `POST ${printable(request.target)}`)} to ${new URL(request.url).host} (${variant})`,
    `  ${request.bodyBytes.length} bytes`,
    ...answered,
    "",
    `${variant}: ${paint(colour, verdictOf(report))}`,
    "",
  ].join("\n");
}

/** A report for programs: one JSON document. It holds no credential and no signature. */
export function webhookReportToJson(report: WebhookReport): string {
  const { variant, request, answer, error, expected, asExpected } = report;
  const document = {
    variant,
    asExpected,
    reached: answer !== undefined,
    request: { method: request.method, url: request.url, body: request.bodyBytes.toString("utf8") },
    answer:
      answer === undefined
        ? null
        : { status: answer.status, durationMs: answer.durationMs, meaning: meaningOf(answer.status) },
    error: error === undefined ? null : { code: error.code, message: error.message },
    expected,
  };
  return jsonDocument(document);
}

function verdictOf({ asExpected, answer }: WebhookReport): string {
  if (asExpected) return "as expected";
  return answer === undefined ? "no answer" : "not as expected";
}

function meaningOf(status: number): string {
  return matchesStatus(status, ["2xx"])
    ? "delivered: every event is done"
    : "not delivered: the service would send the same bytes again, for up to a day";
}
