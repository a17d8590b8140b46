import type { ServiceClientError } from "@countersign/service-client";
import type { GeneratedEndpoint } from "@countersign/webhooks";
import { jsonDocument } from "./json-output.ts";
import { createPaint } from "./paint.ts";
import { bodyLines, printable } from "./printable.ts";

/** What became of one registration: the service's answer, or the error that it ended with. */
export interface EndpointReport {
  readonly url: string;
  readonly answer: { readonly status: number; readonly body: unknown } | undefined;
  readonly error: ServiceClientError | undefined;
  /** What was made up: shown this once, unless the service certainly has no use for it. */
  readonly generated: GeneratedEndpoint | undefined;
}

/** A report for people. Credentials that were given are not shown. */
export function formatEndpointReport(report: EndpointReport, colours: boolean): string {
  const { url, answer, error } = report;
  const paint = createPaint(colours);
  const id = idOf(report);
  const lines = [
    answer === undefined
      ? paint("red", error === undefined ? "not created" : `not created: ${printable(error.message)}`)
      : paint("green", `created (status ${answer.status})`),
    ...(error?.retryAfterSeconds === undefined ? [] : [`  Retry-After: ${error.retryAfterSeconds} s`]),
    ...bodyLines(error?.body ?? ""),
    ...(id === undefined ? [] : [`id        ${printable(String(id))}`]),
    ...(shownGenerated(report) === undefined ? [`url       ${printable(url)}`] : generatedLines(report)),
  ];
  return `${lines.join("\n")}\n`;
}

/** A report for programs: one JSON document. Of the answer to a success it holds the id alone: the rest may repeat credentials. */
export function endpointReportToJson(report: EndpointReport): string {
  const { url, answer, error } = report;
  const document = {
    created: answer !== undefined,
    status: answer?.status ?? error?.status ?? null,
    id: idOf(report) ?? null,
    url,
    error:
      error === undefined
        ? null
        : {
            code: error.code,
            message: error.message,
            body: error.body ?? null,
            retryAfterSeconds: error.retryAfterSeconds ?? null,
          },
    generated: shownGenerated(report) ?? null,
  };
  return jsonDocument(document);
}

// Without a final answer the endpoint may exist, and nobody else knows its credentials.
function shownGenerated({ error, generated }: EndpointReport): GeneratedEndpoint | undefined {
  return error?.code === "rejected" || error?.code === "certificate-rejected" ? undefined : generated;
}

function generatedLines({ error, generated }: EndpointReport): string[] {
  if (generated === undefined) return [];
  const { url, path, username, password, secret } = generated;
  return [
    `url       ${url}`,
    `path      ${path}`,
    `username  ${username}`,
    `password  ${password}`,
    `secret    ${secret}`,
    error === undefined
      ? "Give these to the platform and keep them secret: they are shown this once."
      : "The endpoint may exist all the same: keep these until it is certain.",
  ];
}

/** The spec shows no body; the sandbox, and most services, answer with an id. */
function idOf({ answer }: EndpointReport): string | number | undefined {
  const body = answer?.body;
  const id = typeof body === "object" && body !== null && "id" in body ? body.id : undefined;
  return typeof id === "string" || typeof id === "number" ? id : undefined;
}
