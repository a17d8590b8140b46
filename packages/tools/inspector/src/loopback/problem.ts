import { STATUS_CODES } from "node:http";
import type { ErrorRequestHandler, RequestHandler } from "express";
import { codeOf, messageOf } from "./thrown.ts";
import { ServiceError, serviceError } from "./service-error.ts";

/** How errors of one service are shown. */
export interface ProblemInit {
  /** The service in the warning about a fault of its own: "the sandbox". */
  readonly service: string;
  /** Makes a refusal of what a body parser has thrown. */
  readonly translate?: ((thrown: unknown) => ServiceError | undefined) | undefined;
}

/**
 * Answers every error as problem details (RFC 9457); an answer is always the last thing that a path does. A fault of the service is a
 * 500 and a warning of the process.
 */
export function sendProblem({ service, translate = () => undefined }: ProblemInit): ErrorRequestHandler {
  return (thrown: unknown, _req, res, _next) => {
    const error = thrown instanceof ServiceError ? thrown : (translate(thrown) ?? requestError(thrown));
    if (error === undefined) {
      process.emitWarning(
        `${service} failed: ${messageOf(thrown)} (${codeOf(thrown)})`,
        "CountersignWarning",
      );
    }
    const status = error?.status ?? 500;
    const body = { type: "about:blank", title: STATUS_CODES[status], status };
    res
      .status(status)
      .set("Cache-Control", "no-store")
      .type("application/problem+json")
      // By json(), which masks for a page.
      .json(error === undefined ? body : { ...body, code: error.code, detail: error.message });
  };
}

/** For paths that do not exist. */
export const refuseUnknownPath: RequestHandler = (_req, _res, next) => {
  next(serviceError("not-found", "no such path"));
};

/** For the methods that a path does not have; `allowed` is the value of Allow. */
export function refuseOtherMethods(allowed: string): RequestHandler {
  return (_req, res, next) => {
    res.set("Allow", allowed);
    next(serviceError("method-not-allowed", `this path has ${allowed} alone`));
  };
}

/** The status that Express and its body parsers give to what they throw. */
export function statusOfThrown(thrown: unknown): number {
  const status = typeof thrown === "object" && thrown !== null && "status" in thrown ? thrown.status : 500;
  return typeof status === "number" ? status : 500;
}

// Their messages can quote the request, and are not passed on.
function requestError(thrown: unknown): ServiceError | undefined {
  if (statusOfThrown(thrown) !== 400) return undefined;
  return serviceError("invalid-request", "the path or the JSON of the body cannot be read");
}
