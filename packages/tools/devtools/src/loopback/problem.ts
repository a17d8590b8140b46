import { STATUS_CODES } from "node:http";
import type { ErrorRequestHandler, RequestHandler } from "express";

/** The codes and statuses of every service on loopback; each service adds its own. */
export const serviceStatuses = {
  "invalid-request": 400,
  "token-wrong": 401,
  "host-refused": 403,
  "origin-refused": 403,
  "not-found": 404,
  "method-not-allowed": 405,
} as const;

type ServiceErrorCode = keyof typeof serviceStatuses;

/** A refusal of the service. The message shows no secret: it is the `detail` of the answer. */
export class ServiceError<Code extends string = string> extends Error {
  /** Of every service on loopback, by their codes. */
  static readonly statuses = serviceStatuses;
  override readonly name: string = "ServiceError";
  readonly code: Code;
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
  readonly service: string;
  /** For an error of Express or its body parsers. */
  readonly translate?: ((status: number) => ServiceError | undefined) | undefined;
}

/** Refuses unknown paths, and answers errors as problem details (RFC 9457). The service's own fault is a 500 and a process warning. */
export function sendProblems(init: ProblemInit): readonly [RequestHandler, ErrorRequestHandler] {
  return [refuseUnknownPath, sendProblem(init)];
}

const refuseUnknownPath: RequestHandler = (_req, _res, next) => {
  next(serviceError("not-found", "no such path"));
};

function sendProblem({ service, translate = () => undefined }: ProblemInit): ErrorRequestHandler {
  return (thrown: unknown, _req, res, _next) => {
    const known = statusOfThrown(thrown);
    const error = thrown instanceof ServiceError ? thrown : (translate(known) ?? requestError(known));
    if (error === undefined) {
      const { message, code } = readThrown(thrown);
      process.emitWarning(`${service} failed: ${message} (${code})`, "CountersignWarning");
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

/** `allowed` is the value of Allow. */
export function refuseOtherMethods(allowed: string): RequestHandler {
  return (_req, res, next) => {
    res.set("Allow", allowed);
    next(serviceError("method-not-allowed", `this path has ${allowed} alone`));
  };
}

function statusOfThrown(thrown: unknown): number {
  const { status }: Readonly<Record<string, unknown>> = Object(thrown);
  return typeof status === "number" ? status : 500;
}

// Express's messages can quote the request, so they are not sent.
function requestError(status: number): ServiceError | undefined {
  if (status !== 400) return undefined;
  return serviceError("invalid-request", "the path or the JSON of the body cannot be read");
}

/** The message of a thrown value, and its `code`. In a vm context Node's own errors are not `instanceof Error`. */
export function readThrown(thrown: unknown): { readonly message: string; readonly code: string } {
  const { message, code }: Readonly<Record<string, unknown>> = Object(thrown);
  return {
    message: typeof message === "string" ? message : String(thrown),
    code: typeof code === "string" ? code : "no code",
  };
}
