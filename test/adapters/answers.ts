import type { WireAnswer } from "../support/servers/http-client.ts";

/** Header fields of frameworks and servers, which no row demands. Every other one has to be there by a row, or not at all. */
export const ignoredFields: ReadonlySet<string> = new Set([
  "date",
  "connection",
  "keep-alive",
  "content-length",
  "transfer-encoding",
  "x-powered-by",
  "etag",
]);

/** The answer that a row demands; `unknown-route`: what the app says where nothing is. */
export type Demand = ExactAnswer | "unknown-route";

export interface ExactAnswer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

/** An answer without what is ignored. */
export function comparable({ status, headers, body }: WireAnswer): ExactAnswer {
  const ours = Object.entries(headers)
    .filter(([name]) => !ignoredFields.has(name))
    .map(([name, value]) => [name, String(value)]);
  return { status, headers: Object.fromEntries(ours), body };
}

const titles: Readonly<Record<number, string>> = {
  400: "Bad Request",
  401: "Unauthorized",
  403: "Forbidden",
  404: "Not Found",
  405: "Method Not Allowed",
  409: "Conflict",
  413: "Payload Too Large",
  415: "Unsupported Media Type",
  421: "Misdirected Request",
  422: "Unprocessable Entity",
  500: "Internal Server Error",
  501: "Not Implemented",
  503: "Service Unavailable",
};

export function problem(
  status: number,
  members: Readonly<Record<string, unknown>> = {},
  headers: Readonly<Record<string, string>> = {},
): ExactAnswer {
  const { code, ...others } = members;
  const base = { type: "about:blank", title: titles[status], status };
  // A 5xx shows a code only where that is meant, and then before the rest.
  const body = status < 500 && code !== undefined ? { ...others, ...base, code } : { ...members, ...base };
  return {
    status,
    headers: { "cache-control": "no-store", "content-type": "application/problem+json", ...headers },
    body: JSON.stringify(body),
  };
}

export const payoutUnauthorized: ExactAnswer = problem(401, {}, { "want-content-digest": "sha-256=10" });

/** 503 with the seconds of Retry-After, and a code where a sender may tell them apart. */
export function unavailable(seconds = 5, code?: string): ExactAnswer {
  return problem(503, code === undefined ? {} : { code }, { "retry-after": String(seconds) });
}
