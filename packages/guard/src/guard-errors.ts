import { STATUS_CODES, type OutgoingHttpHeaders } from "node:http";
import { isGuardError, type GuardError } from "./guard-error.ts";
import { assertFunction, assertKnownOptions, optionError } from "./options.ts";
import type { ErrorMiddleware, GuardRequest, GuardResponse } from "./types.ts";

/** Options of {@link guardErrors}. */
export interface GuardErrorsOptions {
  /**
   * Answer every error as the app's own 404 of an unknown route, by handing the request on to the app's later handlers.
   * Mount the guards with `app.use` or `app.all`: `app.post` alone lets Express answer OPTIONS. Default false.
   */
  readonly hide?: boolean | undefined;
  /** Called once for each error answered here, before the answer. Its own throw becomes a process warning. */
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
  const unauthorizedHeaders = { ...options.unauthorizedHeaders };

  // Express tells an error handler by its four parameters.
  return function guardErrorsMiddleware(error, req, res, next) {
    if (res.headersSent) {
      next(error);
    } else if (hide) {
      report(onReject, error, req);
      if (onReject === undefined && !isGuardError(error)) warn(error);
      next();
    } else if (isGuardError(error)) {
      report(onReject, error, req);
      render(res, error, unauthorizedHeaders);
    } else {
      next(error);
    }
  };
}

function report(onReject: GuardErrorsOptions["onReject"], error: unknown, req: GuardRequest): void {
  try {
    onReject?.(error, req);
  } catch (thrown) {
    warn(thrown);
  }
}

function warn(error: unknown): void {
  process.emitWarning(
    error instanceof Error
      ? error
      : new Error("guardErrors met a thrown value that is no Error", { cause: error }),
  );
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
