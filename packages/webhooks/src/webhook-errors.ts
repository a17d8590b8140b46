import { guardErrors, isGuardError, type ErrorMiddleware, type GuardErrorsOptions } from "@countersign/guard";

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
