import { STATUS_CODES, validateHeaderName, validateHeaderValue, type OutgoingHttpHeaders } from "node:http";
import { types } from "node:util";
import { isPromiseLike } from "./deadline.ts";
import { noteHeard } from "./diagnostics.ts";
import { isGuardError, type GuardError } from "./guard-error.ts";
import { quoteForLog } from "./log-text.ts";
import { assertFunction, assertKnownOptions, optionError } from "./options.ts";
import type { ErrorMiddleware, GuardRequest, GuardResponse } from "./types.ts";
import { releaseUnreadBody } from "./unread-body.ts";

/** Options of {@link guardErrors}. */
export interface GuardErrorsOptions {
  /**
   * Answer every error as the app's own 404 of an unknown route, by handing the request on to the app's later handlers.
   * Mount the guards with `app.use` or `app.all`: `app.post` alone lets Express answer OPTIONS. Default false.
   */
  readonly hide?: boolean | undefined;
  /**
   * Called once for each error answered here, before the answer. Its own throw or rejection becomes a process warning. Without it,
   * and without subscribers of `countersign:guard`, each refusal of a guard is a line on stderr.
   */
  readonly onReject?: ((error: unknown, req: GuardRequest) => void) | undefined;
  /**
   * Header fields of every 401, for example `{ "Want-Content-Digest": "sha-256=10" }`. Of a 401's own header fields only
   * WWW-Authenticate is sent; all others would tell the caller which check failed. Default none.
   */
  readonly unauthorizedHeaders?: Readonly<OutgoingHttpHeaders> | undefined;
}

/**
 * The error handler for guards, to be mounted behind them. Renders a GuardError as problem details (RFC 9457) with one body
 * for every 401; hands any other error on, unless `hide` is set. Throws a TypeError on a bad option.
 */
export function guardErrors(options: GuardErrorsOptions = {}): ErrorMiddleware {
  assertKnownOptions("guardErrors", options, ["hide", "onReject", "unauthorizedHeaders"]);
  const { hide = false, onReject } = options;
  if (typeof hide !== "boolean") throw optionError("guardErrors", "hide", "true or false", hide);
  if (onReject !== undefined) assertFunction("guardErrors", "onReject", onReject);
  const unauthorizedHeaders = resolveHeaders(options.unauthorizedHeaders);

  // Express tells an error handler by its four parameters.
  return function guardErrorsMiddleware(error, req, res, next) {
    if (res.headersSent) {
      next(error);
    } else if (hide) {
      report(onReject, error, req);
      if (onReject === undefined && !isGuardError(error)) warn("hid an error", error);
      releaseUnreadBody(req);
      // A status that a failing handler left behind would show in a custom 404 handler.
      res.statusCode = 200;
      next();
    } else if (isGuardError(error)) {
      report(onReject, error, req);
      render(res, error, unauthorizedHeaders);
    } else {
      next(error);
    }
  };
}

function resolveHeaders(headers: unknown): OutgoingHttpHeaders {
  if (headers === undefined) return {};
  const expected = "an object of valid header fields";
  if (typeof headers !== "object" || headers === null || Array.isArray(headers)) {
    throw optionError("guardErrors", "unauthorizedHeaders", expected, headers);
  }
  const resolved: OutgoingHttpHeaders = { ...headers };
  for (const [name, value] of Object.entries(resolved)) {
    try {
      validateHeaderName(name);
      for (const line of [value].flat()) validateHeaderValue(name, String(line));
    } catch {
      throw optionError("guardErrors", `unauthorizedHeaders[${JSON.stringify(name)}]`, expected, value);
    }
  }
  return resolved;
}

function report(onReject: GuardErrorsOptions["onReject"], error: unknown, req: GuardRequest): void {
  if (onReject === undefined) return;
  noteHeard(req);
  try {
    const outcome: unknown = onReject(error, req);
    // An async callback that rejects must not end the process as an unhandled rejection.
    // oxlint-disable-next-line promise/prefer-await-to-then -- the answer does not wait for the callback
    if (isPromiseLike(outcome)) outcome.then(undefined, warnOfThrow);
  } catch (thrown) {
    warnOfThrow(thrown);
  }
}

function warnOfThrow(thrown: unknown): void {
  warn("caught what onReject threw", thrown);
}

function warn(what: string, error: unknown): void {
  const isError = types.isNativeError(error);
  // The message can quote the request, so it is escaped; the stack repeats it in front of its frames.
  const text = isError ? `${error.name}: ${quoteForLog(error.message, 200)}` : "a value that is no Error";
  const frames = isError ? framesOf(error) : "";
  process.emitWarning(`guardErrors ${what}: ${text}`, frames === "" ? {} : { detail: frames });
}

function framesOf(error: Error): string {
  const { stack = "", message } = error;
  const at = stack.indexOf(message);
  return at < 0 ? "" : stack.slice(at + message.length).trimStart();
}

const unauthorizedBody = problemBody(401, undefined, {});

function render(res: GuardResponse, error: GuardError, unauthorizedHeaders: OutgoingHttpHeaders): void {
  const { status } = error;
  const unauthorized = status === 401;
  const headers = unauthorized ? { ...wwwAuthenticateOf(error), ...unauthorizedHeaders } : error.headers;
  const body = unauthorized ? unauthorizedBody : problemBody(status, error.code, error.problem);
  res.statusCode = status;
  for (const [name, value] of Object.entries(headers)) {
    if (value !== undefined) res.setHeader(name, value);
  }
  res.setHeader("Cache-Control", "no-store");
  res.setHeader("Content-Type", "application/problem+json");
  res.setHeader("Content-Length", Buffer.byteLength(body));
  res.end(body);
}

function wwwAuthenticateOf(error: GuardError): OutgoingHttpHeaders {
  const field = Object.entries(error.headers).find(([name]) => name.toLowerCase() === "www-authenticate");
  return field === undefined ? {} : { [field[0]]: field[1] };
}

// The code of a 5xx names the part that failed; only what the guard put into `problem` on purpose leaves the house.
function problemBody(
  status: number,
  code: string | undefined,
  problem: Readonly<Record<string, unknown>>,
): string {
  const base = { type: "about:blank", title: STATUS_CODES[status] ?? "Error", status };
  return JSON.stringify(
    status < 500 && code !== undefined ? { ...problem, ...base, code } : { ...problem, ...base },
  );
}
