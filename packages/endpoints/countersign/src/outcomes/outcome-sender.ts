import { quoteForLog } from "@countersign/core";
import { isPromiseLike } from "@countersign/core/internal";
import { exchange, parseRetryAfter, redact } from "../internal.ts";
import { ServiceClientError } from "../client/index.ts";
import { TaskError, type ClaimedTask } from "@countersign/idempotency/work";
import { backoffOf } from "@countersign/idempotency/work/internal";
import {
  areHeaders,
  resolveSenderOptions,
  urlFault,
  type OutcomeSenderOptions,
  type ResolvedSenderOptions,
} from "./options.ts";
import { outcomeOf, textOf, type Outcome, type OutcomeReport } from "./outcome.ts";

interface Request {
  readonly url: string;
  readonly method: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

interface ShownAnswer extends Answer {
  /** What must not be shown where the service repeats it. */
  readonly secrets: readonly string[];
}

/**
 * For a queue of your own: returns a function that sends an outcome once, as reported or as JSON has kept it. It resolves when the service
 * has it, and throws a TaskError otherwise: `isFinal` when it was refused for good, with what Retry-After asked for in `retryInMs` (0:
 * nothing). Throws an OptionError.
 */
export function createOutcomeSender(
  options: OutcomeSenderOptions,
): (outcome: Outcome | OutcomeReport, signal?: AbortSignal) => Promise<void> {
  const read = resolveSenderOptions(options);
  return async ({ settledAt, ...outcome }, signal = new AbortController().signal) => {
    const time = typeof settledAt === "string" ? new Date(settledAt) : settledAt;
    await sendOutcome({ body: textOf({ ...outcome, settledAt: time }), attempt: 1 }, read, signal);
  };
}

/** Sends an outcome once. Resolves when the service has it; throws a TaskError that says what is to follow. */
export async function sendOutcome(
  { body, attempt }: Pick<ClaimedTask, "body" | "attempt">,
  options: ResolvedSenderOptions,
  signal: AbortSignal,
): Promise<void> {
  const { answers, timeoutMs } = options;
  const request = await requestOf(outcomeOf(body), options);
  const answer = await sent(request, timeoutMs, signal);
  const meaning: string = answers(answer.status);
  if (meaning === "sent" || meaning === "known") return;
  const reason = reasonOf({ ...answer, secrets: secretsOf(request) });
  if (meaning === "refused") throw new TaskError(reason, { isFinal: true });
  if (meaning !== "retry") throw new TaskError(`${reason}; answers() gave none of its words`);
  const askedMs = (parseRetryAfter(answer.retryAfter, Date.now()) ?? 0) * 1_000;
  // Never sooner than the worker's own pause.
  const retryInMs = Math.max(backoffOf(attempt, options), Math.min(askedMs, options.maxBackoffMs));
  throw new TaskError(reason, { retryInMs });
}

async function requestOf(
  outcome: Outcome,
  { url, method, headers, body }: ResolvedSenderOptions,
): Promise<Request> {
  const [target, fields] = await Promise.all([
    typeof url === "function" ? url(outcome) : url,
    typeof headers === "function" ? headers(outcome) : headers,
  ]);
  const fault = urlFault(target);
  if (fault !== undefined) throw new TaskError(`what url() gave ${fault}`);
  if (!areHeaders(fields)) throw new TaskError("what headers() gave are no header fields that can be sent");
  const given: unknown = body(outcome);
  if (isPromiseLike(given)) {
    // Its rejection is nobody's any more, and would end the process.
    given.then(undefined, () => {});
    throw new TaskError("what body() gave is a promise, of which JSON would make {}: write it without async");
  }
  const text: unknown = JSON.stringify(given);
  if (typeof text !== "string") throw new TaskError("what body() gave is no JSON value");
  // By name in any case: the app's own content-type counts.
  const all = new Headers({ "content-type": "application/json", ...lowerCased(fields) });
  return { url: String(target), method, headers: Object.fromEntries(all), body: text };
}

function lowerCased(fields: Readonly<Record<string, string>>): Record<string, string> {
  return Object.fromEntries(Object.entries(fields).map(([name, value]) => [name.toLowerCase(), value]));
}

type Answer = Awaited<ReturnType<typeof exchange>>;

async function sent(request: Request, timeoutMs: number, signal: AbortSignal): Promise<Answer> {
  try {
    return await exchange({ fetch: globalThis.fetch, ...request, timeoutMs, signal });
  } catch (error) {
    throw error instanceof ServiceClientError ? new TaskError(error.message) : error;
  }
}

function secretsOf({ url, headers }: Request): readonly string[] {
  const { "content-type": _type, ...own } = headers;
  return [...Object.values(own), new URL(url).search.slice(1)].filter((secret) => secret !== "");
}

const shownBytes = 1_024;

function reasonOf({ status, bytes, secrets }: ShownAnswer): string {
  const shown = bytes.subarray(0, shownBytes);
  const text = { text: shown.toString("utf8"), truncated: shown.length < bytes.length };
  const safe = secrets.length === 0 ? text.text : redact(text, secrets);
  const said = safe === "" ? "" : `: ${quoteForLog(safe, shownBytes)}`;
  return `the service answered ${status}${hintOf(status)}${said}`;
}

function hintOf(status: number): string {
  if (status >= 300 && status < 400) return ", a redirect, which is not followed (see the option url)";
  if (status === 401 || status === 403) return " (see the option headers)";
  return status === 404 || status === 405 ? " (see the options url and method)" : "";
}
