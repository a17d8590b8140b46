import { STATUS_CODES } from "node:http";
import { explainStatus, type PayoutOutcome, type PayoutReport } from "@countersign/sandbox/protocol";
import { jsonDocument } from "../json-output.ts";
import { createPaint, type Paint } from "../paint.ts";
import { bodyLines, printable } from "../printable.ts";

/** A report for people. */
export function formatReport(report: PayoutReport, colours: boolean): string {
  const paint = createPaint(colours);
  const lines = report.outcomes.flatMap((outcome) => outcomeLines(outcome, paint));
  const summary = report.asExpected
    ? paint("green", "as expected")
    : paint("red", report.reached ? "not as expected" : "no answer");
  return [...lines, `${report.variant}: ${summary}`, ""].join("\n");
}

/** A report for programs: one JSON document. It holds what was sent and received, and nothing of the private key. */
export function reportToJson(report: PayoutReport): string {
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
    answer: answer === undefined ? null : { ...answer, meaning: explainStatus(answer.status) },
    error: error === undefined ? null : { code: error.code, message: error.message },
    expected,
    asExpected,
  }));
  return jsonDocument({ ...report, outcomes });
}

function outcomeLines(outcome: PayoutOutcome, paint: Paint): string[] {
  const { name, request, expected, asExpected, answer, error } = outcome;
  const { keyid, nonce, created, expires } = request.signature;
  const sent = [
    `${paint("bold", `${request.method} ${printable(request.target)}`)} to ${new URL(request.url).host} (${name})`,
    ...idempotencyKeyLine(request.bodyBytes),
    `  keyid    ${printable(keyid)}`,
    `  nonce    ${nonce}`,
    `  created  ${formatTime(created)}`,
    `  expires  ${formatTime(expires)}`,
  ];
  if (answer === undefined)
    return [...sent, `  ${paint("red", printable(error?.message ?? "no answer"))}`, ""];
  return [
    ...sent,
    paint(
      asExpected ? "green" : "red",
      `${answer.status} ${STATUS_CODES[answer.status] ?? ""}, expected ${formatExpected(expected)}`,
    ) + ` (${answer.durationMs.toFixed(0)} ms)`,
    `  ${explainStatus(answer.status)}`,
    ...retryAfter(answer.headers["retry-after"]),
    ...bodyLines(answer.body, answer.bodyTruncated),
    "",
  ];
}

function idempotencyKeyLine(bodyBytes: Buffer): string[] {
  const body: unknown = JSON.parse(new TextDecoder().decode(bodyBytes));
  const key =
    typeof body === "object" && body !== null && "idempotency_key" in body ? body.idempotency_key : undefined;
  return typeof key === "string" ? [`  key      ${printable(key)}`] : [];
}

function retryAfter(seconds: string | undefined): string[] {
  return seconds === undefined ? [] : [`  Retry-After: ${printable(seconds)}`];
}

function formatTime(seconds: number): string {
  return `${seconds} (${new Date(seconds * 1000).toISOString()})`;
}

function formatExpected(expected: readonly string[]): string {
  return expected.join(" or ");
}
