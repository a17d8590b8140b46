import { ServiceError } from "@countersign/inspector/loopback";

/** Codes of problem details, and of what the library throws. */
export type SandboxErrorCode =
  | keyof typeof ServiceError.statuses
  | "api-key-wrong"
  | "status-unchanged"
  | "payment-request-exists"
  | "payment-request-closed"
  | "delivery-state"
  | "body-too-large"
  | "media-type-unsupported";

const statusOf: Readonly<Record<SandboxErrorCode, number>> = {
  ...ServiceError.statuses,
  "api-key-wrong": 401,
  "status-unchanged": 409,
  "payment-request-exists": 409,
  "payment-request-closed": 409,
  "delivery-state": 409,
  "body-too-large": 413,
  "media-type-unsupported": 415,
};

/** Nothing has changed and nothing is sent. The message shows no secret. */
export class SandboxError extends ServiceError<SandboxErrorCode> {
  override readonly name: string = "SandboxError";

  constructor(code: SandboxErrorCode, message: string, options?: ErrorOptions) {
    super(code, statusOf[code], message, options);
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
