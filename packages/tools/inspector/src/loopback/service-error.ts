/** Why every service on loopback may refuse; one of them adds its own. */
export type ServiceErrorCode =
  | "invalid-request"
  | "token-wrong"
  | "host-refused"
  | "origin-refused"
  | "not-found"
  | "method-not-allowed";

/** The service refuses what was asked of it. The message shows no secret: it is the `detail` of the answer. */
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

/** The statuses of their answers. */
export const serviceStatuses: Readonly<Record<ServiceErrorCode, number>> = {
  "invalid-request": 400,
  "token-wrong": 401,
  "host-refused": 403,
  "origin-refused": 403,
  "not-found": 404,
  "method-not-allowed": 405,
};

/** A refusal that every service has. */
export function serviceError(code: ServiceErrorCode, message: string): ServiceError<ServiceErrorCode> {
  return new ServiceError(code, serviceStatuses[code], message);
}
