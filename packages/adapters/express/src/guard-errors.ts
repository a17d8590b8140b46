import { validateHeaderName, validateHeaderValue } from "node:http";
import { isGuardError } from "@countersign/core";
import {
  option,
  optionError,
  problems,
  publishThrown,
  readOptions,
  reportReject,
  verdicts,
  warnOfError,
  type HeaderFields,
  type OptionOwner,
  type OptionTable,
  type ProblemAnswer,
} from "@countersign/core/internal";
import { thrownByCheck } from "./handed-on.ts";
import { reportFailure } from "./node-response.ts";
import type { ErrorMiddleware, GuardRequest, GuardResponse } from "./types.ts";
import { releaseUnreadBody } from "./unread-body.ts";

const factoryName = "guardErrors";

export interface GuardErrorsOptions {
  /**
   * Answers every error as the app's 404 of an unknown route, by handing the request on to later handlers. Default false.
   * Mount the guards with `app.use` or `app.all`: `app.post` alone lets Express answer OPTIONS.
   */
  readonly hide?: boolean | undefined;
  /**
   * Called once for each error, before its answer. Its throw or rejection becomes a process warning. Without it and without
   * subscribers of `countersign:guard`, each refusal is a line on stderr.
   */
  readonly onReject?: ((error: unknown, req: GuardRequest) => void) | undefined;
  /**
   * Header fields of every 401, such as `{ "Want-Content-Digest": "sha-256=10" }`. Of its own a 401 has only WWW-Authenticate: others
   * would tell the caller which check failed. Default none.
   */
  readonly unauthorizedHeaders?: HeaderFields | undefined;
  /** Adds the verdict's random id, `"instance": "urn:uuid:…"` (RFC 9457 section 3.1.5), for the caller to quote. Default false. */
  readonly verdictId?: boolean | undefined;
}

export const table = {
  hide: option.boolean(false),
  onReject: option.optional(option.call<NonNullable<GuardErrorsOptions["onReject"]>>()),
  unauthorizedHeaders: option.own(readHeaders, "none"),
  verdictId: option.boolean(false),
} satisfies OptionTable<GuardErrorsOptions, unknown>;

/**
 * Handles guards' errors; mount it after them. Renders a GuardError as problem details (RFC 9457), one body for every 401; hands
 * others on, unless `hide` is set. Throws an OptionError on a bad option.
 */
export function guardErrors(options: GuardErrorsOptions = {}): ErrorMiddleware {
  const { hide, onReject, ...answer } = readOptions(factoryName, table, options);

  // Express recognises an error handler by its four parameters.
  return function guardErrorsMiddleware(given, req, res, next) {
    const error = thrownByCheck(given);
    if (!isGuardError(error)) publishThrown(error, req);
    reportFailure(res, error);
    if (res.headersSent) {
      next(given);
    } else if (hide) {
      if (onReject !== undefined) reportReject(factoryName, onReject, error, req);
      else if (!isGuardError(error)) warnOfError(factoryName, "hid an error", error);
      releaseUnreadBody(req);
      publish(error, req);
      // A failing handler's leftover status would show in a custom 404 handler.
      res.statusCode = 200;
      next();
    } else if (isGuardError(error)) {
      if (onReject !== undefined) reportReject(factoryName, onReject, error, req);
      render(req, res, problems.ofError(error, answer));
      publish(error, req);
    } else {
      next(given);
    }
  };
}

/** For a refusal that no check published, such as the reason of an aborted signal that a handler throws. */
function publish(error: unknown, req: GuardRequest): void {
  const check = { name: factoryName, req };
  if (isGuardError(error) && verdicts.publish(check, verdicts.start(), error))
    verdicts.writeUnreported(check, req.method, error);
}

function readHeaders(headers: unknown = {}, owner: OptionOwner, name: string): HeaderFields {
  const expected = "an object of valid header fields";
  if (typeof headers !== "object" || headers === null || Array.isArray(headers)) {
    throw optionError(owner, name, expected, headers);
  }
  const resolved: HeaderFields = { ...headers };
  for (const [field, value] of Object.entries(resolved)) {
    try {
      validateHeaderName(field);
      for (const line of [value].flat()) validateHeaderValue(field, String(line));
    } catch {
      throw optionError(owner, `${name}[${JSON.stringify(field)}]`, expected, value);
    }
  }
  return resolved;
}

function render(req: GuardRequest, res: GuardResponse, { status, headers, body }: ProblemAnswer): void {
  res.statusCode = status;
  for (const [name, value] of Object.entries(headers)) {
    // HTTP/2 has no such field (RFC 9113 section 8.2.2).
    if (name === "Connection" && req.httpVersionMajor >= 2) continue;
    if (value !== undefined) res.setHeader(name, value);
  }
  res.setHeader("Content-Length", Buffer.byteLength(body));
  res.end(body);
}
