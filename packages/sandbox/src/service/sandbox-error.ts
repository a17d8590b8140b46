/** Why the service refused: codes of problem details, and of what the library throws. */
export type SandboxErrorCode =
  | "invalid-request"
  | "api-key-wrong"
  | "host-refused"
  | "origin-refused"
  | "not-found"
  | "method-not-allowed"
  | "status-unchanged"
  | "payment-request-exists"
  | "payment-request-closed"
  | "delivery-state"
  | "body-too-large"
  | "media-type-unsupported";

const statusOf: Readonly<Record<SandboxErrorCode, number>> = {
  "invalid-request": 400,
  "api-key-wrong": 401,
  "host-refused": 403,
  "origin-refused": 403,
  "not-found": 404,
  "method-not-allowed": 405,
  "status-unchanged": 409,
  "payment-request-exists": 409,
  "payment-request-closed": 409,
  "delivery-state": 409,
  "body-too-large": 413,
  "media-type-unsupported": 415,
};

/** The service refuses what was asked of it; nothing has changed and nothing is sent. The message shows no secret. */
export class SandboxError extends Error {
  override readonly name: string = "SandboxError";
  readonly code: SandboxErrorCode;
  /** The status of the answer over HTTP. */
  readonly status: number;

  constructor(code: SandboxErrorCode, message: string, options?: ErrorOptions) {
    super(message, options);
    this.code = code;
    this.status = statusOf[code];
  }
}

/** Runs what throws a TypeError on a caller's mistake, and throws that as `invalid-request`. */
export function refuseTypeErrors<T>(work: () => T): T {
  try {
    return work();
  } catch (error) {
    if (error instanceof TypeError)
      throw new SandboxError("invalid-request", error.message, { cause: error });
    throw error;
  }
}
