import { causedBy } from "@countersign/core/internal";

/**
 * `rejected`: a 4xx. `unavailable`: 408, 429, 5xx, also after retries. `redirect-refused`: a 3xx. `invalid-response`: a 2xx, no JSON or too
 * large. `timeout`, `network`: no complete answer. `certificate-rejected`: server not authenticated. `aborted`: by the caller.
 */
export type ServiceClientErrorCode =
  | "rejected"
  | "unavailable"
  | "redirect-refused"
  | "invalid-response"
  | "timeout"
  | "network"
  | "certificate-rejected"
  | "aborted";

type ServiceClientErrorInit = ErrorOptions &
  Partial<Pick<ServiceClientError, "status" | "body" | "retryAfterSeconds">>;

/** The call did not succeed. Nothing in it shows the API key, a password or a signature secret. */
export class ServiceClientError extends Error {
  override readonly name: string = "ServiceClientError";
  readonly code: ServiceClientErrorCode;
  readonly status: number | undefined;
  /** The first 4,096 characters of the answer's body; what was secret in the request is replaced. */
  readonly body: string | undefined;
  /** When the service asked to be called again, in seconds from the answer (RFC 9110 section 10.2.3). */
  readonly retryAfterSeconds: number | undefined;

  constructor(code: ServiceClientErrorCode, message: string, init: ServiceClientErrorInit = {}) {
    super(message, causedBy(init.cause));
    this.code = code;
    this.status = init.status;
    this.body = init.body;
    this.retryAfterSeconds = init.retryAfterSeconds;
  }
}
