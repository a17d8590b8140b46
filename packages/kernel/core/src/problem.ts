import type { GuardError, HeaderFields } from "./guard-error.ts";
import { quoteVerdictId } from "./observation/verdict.ts";

export interface ProblemAnswer {
  readonly status: number;
  readonly headers: HeaderFields;
  /** Problem details (RFC 9457), ASCII or UTF-8. */
  readonly body: string;
}

interface ProblemOptions {
  /** Header fields of every 401. Default none. */
  readonly unauthorizedHeaders?: HeaderFields | undefined;
  /** Adds the verdict's id, as `instance` (RFC 9457 section 3.1.5). Default false. */
  readonly verdictId?: boolean | undefined;
}

/** Answers with problem details (RFC 9457). */
export const problems = { ofError: problemAnswer, ofStatus: statusAnswer };

/**
 * Answers a refusal with problem details: one body for every 401, but for its id with `verdictId`. A 401 has no own header field but
 * WWW-Authenticate, beside `unauthorizedHeaders`: others would tell the caller which check failed.
 */
function problemAnswer(
  error: GuardError,
  { unauthorizedHeaders = {}, verdictId = false }: ProblemOptions = {},
): ProblemAnswer {
  const { status } = error;
  const unauthorized = status === 401;
  const own = unauthorized ? { ...wwwAuthenticateOf(error), ...unauthorizedHeaders } : error.headers;
  const id = verdictId ? quoteVerdictId(error) : undefined;
  const problem = unauthorized ? {} : error.problem;
  const shown = id === undefined ? problem : { ...problem, instance: `urn:uuid:${id}` };
  const body =
    unauthorized && id === undefined
      ? unauthorizedBody
      : problemBody(status, unauthorized ? undefined : error.code, shown);
  return { status, headers: { ...own, ...problemHeaders }, body };
}

/** The answer sent in place of a handler's. */
export interface Replacement {
  readonly status: number;
  readonly retryAfterSeconds?: number | undefined;
}

/** Problem details of a bare status, without a code. */
function statusAnswer(status: number, headers: HeaderFields = {}): ProblemAnswer {
  return { status, headers: { ...headers, ...problemHeaders }, body: problemBody(status, undefined, {}) };
}

const problemHeaders: HeaderFields = {
  "Cache-Control": "no-store",
  "Content-Type": "application/problem+json",
};

// By the phrases of Node, without node:http, which only an adapter knows.
const titles: ReadonlyMap<number, string> = new Map([
  [400, "Bad Request"],
  [401, "Unauthorized"],
  [402, "Payment Required"],
  [403, "Forbidden"],
  [404, "Not Found"],
  [405, "Method Not Allowed"],
  [406, "Not Acceptable"],
  [407, "Proxy Authentication Required"],
  [408, "Request Timeout"],
  [409, "Conflict"],
  [410, "Gone"],
  [411, "Length Required"],
  [412, "Precondition Failed"],
  [413, "Payload Too Large"],
  [414, "URI Too Long"],
  [415, "Unsupported Media Type"],
  [416, "Range Not Satisfiable"],
  [417, "Expectation Failed"],
  [418, "I'm a Teapot"],
  [421, "Misdirected Request"],
  [422, "Unprocessable Entity"],
  [423, "Locked"],
  [424, "Failed Dependency"],
  [425, "Too Early"],
  [426, "Upgrade Required"],
  [428, "Precondition Required"],
  [429, "Too Many Requests"],
  [431, "Request Header Fields Too Large"],
  [451, "Unavailable For Legal Reasons"],
  [500, "Internal Server Error"],
  [501, "Not Implemented"],
  [502, "Bad Gateway"],
  [503, "Service Unavailable"],
  [504, "Gateway Timeout"],
  [505, "HTTP Version Not Supported"],
  [506, "Variant Also Negotiates"],
  [507, "Insufficient Storage"],
  [508, "Loop Detected"],
  [509, "Bandwidth Limit Exceeded"],
  [510, "Not Extended"],
  [511, "Network Authentication Required"],
]);

function wwwAuthenticateOf(error: GuardError): HeaderFields {
  const field = Object.entries(error.headers).find(([name]) => name.toLowerCase() === "www-authenticate");
  return field === undefined ? {} : { [field[0]]: field[1] };
}

// The code of a 5xx names the part that failed. Only `problem` reaches the caller.
function problemBody(
  status: number,
  code: string | undefined,
  problem: Readonly<Record<string, unknown>>,
): string {
  const base = { type: "about:blank", title: titles.get(status) ?? "Error", status };
  return JSON.stringify(
    status < 500 && code !== undefined ? { ...problem, ...base, code } : { ...problem, ...base },
  );
}

const unauthorizedBody = problemBody(401, undefined, {});
