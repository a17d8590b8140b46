import { ServiceError } from "../../loopback/index.ts";

const statuses = {
  ...ServiceError.statuses,
  "api-key-wrong": 401,
  "status-unchanged": 409,
  "payment-request-exists": 409,
  "payment-request-closed": 409,
  "delivery-state": 409,
  "body-too-large": 413,
  "media-type-unsupported": 415,
} as const;

/** Codes of problem details, and of what the library throws. */
type SandboxErrorCode = keyof typeof statuses;

/** Nothing has changed and nothing is sent. The message shows no secret. */
export class SandboxError extends ServiceError<SandboxErrorCode> {
  override readonly name: string = "SandboxError";

  constructor(code: SandboxErrorCode, message: string, options?: ErrorOptions) {
    super(code, statuses[code], message, options);
  }
}

/** Rethrows a TypeError, a caller's mistake, as `invalid-request`. */
export function refuseTypeErrors<T>(work: () => T): T {
  try {
    return work();
  } catch (error) {
    if (error instanceof TypeError)
      throw new SandboxError("invalid-request", error.message, { cause: error });
    throw error;
  }
}
