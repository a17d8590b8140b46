import { STATUS_CODES } from "node:http";
import type { ErrorRequestHandler, RequestHandler } from "express";

/** Codes that every service on loopback has; one of them adds its own. */
export type ServiceErrorCode =
  | "invalid-request"
  | "token-wrong"
  | "host-refused"
  | "origin-refused"
  | "not-found"
  | "method-not-allowed";

/** The statuses of their answers. */
export const serviceStatuses: Readonly<Record<ServiceErrorCode, number>> = {
  "invalid-request": 400,
  "token-wrong": 401,
  "host-refused": 403,
  "origin-refused": 403,
  "not-found": 404,
  "method-not-allowed": 405,
};

/** A refusal of the service. The message shows no secret: it is the `detail` of the answer. */
export class ServiceError<Code extends string = string> extends Error {
  override readonly name: string = "ServiceError";
  readonly code: Code;
  /** The status of the answer over HTTP. */
  readonly status: number;

  constructor(code: Code, status: number, message: string, options?: ErrorOptions) {
    super(message, options);
    this.code = code;
    this.status = status;
  }
}

export function serviceError(code: ServiceErrorCode, message: string): ServiceError<ServiceErrorCode> {
  return new ServiceError(code, serviceStatuses[code], message);
}

export interface ProblemInit {
  /** The service in the warning about a fault of its own: "the sandbox". */
  readonly service: string;
  /** Turns an error of a body parser into a refusal. */
  readonly translate?: ((thrown: unknown) => ServiceError | undefined) | undefined;
}

/**
 * Answers every error as problem details (RFC 9457). A fault of the service is a 500 and a warning of the process.
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

/** Answers an unknown path. */
export const refuseUnknownPath: RequestHandler = (_req, _res, next) => {
  next(serviceError("not-found", "no such path"));
};

/** Answers a method that a path lacks; `allowed` is the value of Allow. */
export function refuseOtherMethods(allowed: string): RequestHandler {
  return (_req, res, next) => {
    res.set("Allow", allowed);
    next(serviceError("method-not-allowed", `this path has ${allowed} alone`));
  };
}

/** The status of an error of Express or its body parsers. */
export function statusOfThrown(thrown: unknown): number {
  const status = typeof thrown === "object" && thrown !== null && "status" in thrown ? thrown.status : 500;
  return typeof status === "number" ? status : 500;
}

// Messages of Express can quote the request, so they are not sent.
function requestError(thrown: unknown): ServiceError | undefined {
  if (statusOfThrown(thrown) !== 400) return undefined;
  return serviceError("invalid-request", "the path or the JSON of the body cannot be read");
}

// In a vm context Node's own errors are not `instanceof Error`.

/** The `code` of a thrown value, such as ENOENT. */
export function codeOf(thrown: unknown): string {
  const code = isObject(thrown) && "code" in thrown ? thrown.code : undefined;
  return typeof code === "string" ? code : "no code";
}

/** The message of a thrown value. */
export function messageOf(thrown: unknown): string {
  const message = isObject(thrown) && "message" in thrown ? thrown.message : undefined;
  return typeof message === "string" ? message : String(thrown);
}

function isObject(value: unknown): value is object {
  return typeof value === "object" && value !== null;
}
