import { STATUS_CODES } from "node:http";
import type { ErrorRequestHandler, RequestHandler } from "express";
import { codeOf, messageOf } from "../thrown.ts";
import { SandboxError } from "./sandbox-error.ts";

/** Answers every error as problem details (RFC 9457); an answer is always the last thing that a path does. A fault of the service is a 500 and a warning of the process. */
export const sendProblem: ErrorRequestHandler = (thrown: unknown, _req, res, _next) => {
  const error = thrown instanceof SandboxError ? thrown : parserError(thrown);
  if (error === undefined) {
    process.emitWarning(`the sandbox failed: ${messageOf(thrown)} (${codeOf(thrown)})`, "CountersignWarning");
  }
  const status = error?.status ?? 500;
  const body = { type: "about:blank", title: STATUS_CODES[status], status };
  res
    .status(status)
    .set("Cache-Control", "no-store")
    .type("application/problem+json")
    .send(JSON.stringify(error === undefined ? body : { ...body, code: error.code, detail: error.message }));
};

/** For paths that do not exist. */
export const refuseUnknownPath: RequestHandler = (_req, _res, next) => {
  next(new SandboxError("not-found", "no such path"));
};

/** For the methods that a path does not have; `allowed` is the value of Allow. */
export function refuseOtherMethods(allowed: string): RequestHandler {
  return (_req, res, next) => {
    res.set("Allow", allowed);
    next(new SandboxError("method-not-allowed", `this path has ${allowed} alone`));
  };
}

// Of what Express and its body parser found in a request. Their messages can quote the body, and are not passed on.
function parserError(thrown: unknown): SandboxError | undefined {
  const status = typeof thrown === "object" && thrown !== null && "status" in thrown ? thrown.status : 500;
  if (status === 413) return new SandboxError("body-too-large", "the body is longer than 1 MiB");
  if (status === 415) return new SandboxError("media-type-unsupported", "send application/json, not encoded");
  if (status !== 400) return undefined;
  return new SandboxError("invalid-request", "the path or the JSON of the body cannot be read");
}
