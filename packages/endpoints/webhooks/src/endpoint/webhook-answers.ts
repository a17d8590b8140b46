import { isGuardError, quoteForLog } from "@countersign/core";
import {
  guardErrors,
  type ErrorMiddleware,
  type GuardErrorsOptions,
  type GuardResponse,
  type NextFunction,
} from "@countersign/express";

/**
 * `guardErrors` for a webhook endpoint. Hidden, a mistake of the app's own configuration would be a 404 without a trace: without
 * `onReject` its first occurrence becomes a process warning.
 */
export function webhookErrors(options: GuardErrorsOptions): ErrorMiddleware {
  const answer = guardErrors(options);
  if (options.hide !== true) return answer;
  const warnOnce = options.onReject === undefined ? createWarnOnce() : undefined;
  return (error, req, res, next) => {
    warnOnce?.(error);
    answer(error, req, res, next);
  };
}

function createWarnOnce(): (error: unknown) => void {
  const warned = new Set<string>();
  return (error) => {
    // All other codes are the caller's fault, or of a store, which has notices of its own.
    if (!isGuardError(error) || error.status !== 500 || warned.has(error.code)) return;
    warned.add(error.code);
    process.emitWarning(`webhookEndpoint hid an error of its configuration: ${error.code}: ${error.message}`);
  };
}

/**
 * Takes the place of `next` where no router can answer instead: whoever calls the endpoint by hand would take its `next()` for
 * "verified". A refusal is a bare 404, an error that nobody expected a bare 500 and a process warning.
 */
export function ownAnswers(res: GuardResponse): NextFunction {
  return (error) => {
    if (error !== undefined && error !== null) warn(error);
    if (res.headersSent) {
      if (!res.writableEnded) res.destroy();
      return;
    }
    res.statusCode = error === undefined || error === null ? 404 : 500;
    res.end();
  };
}

function warn(error: unknown): void {
  const text = error instanceof Error ? quoteForLog(`${error.name}: ${error.message}`, 200) : "no Error";
  process.emitWarning(`webhookEndpoint failed: ${text}`);
}
