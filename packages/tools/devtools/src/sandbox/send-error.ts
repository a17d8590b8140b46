import { readThrown } from "../loopback/index.ts";

export type SendErrorCode =
  | "connection-refused"
  | "host-not-found"
  | "timed-out"
  | "connection-lost"
  | "certificate-rejected"
  | "local-address-unavailable"
  | "not-http"
  | "connection-failed";

/** No complete answer came: unless the connection was refused, the platform may have acted on the request. */
export class PayoutSendError extends Error {
  override readonly name: string = "PayoutSendError";
  readonly code: SendErrorCode;

  constructor(code: SendErrorCode, message: string, options?: ErrorOptions) {
    super(message, options);
    this.code = code;
  }
}

/** Puts an error of node:http, node:tls or the resolver into words. `origin` is scheme, host and port. */
export function sendErrorOf(error: unknown, origin: string): PayoutSendError {
  if (error instanceof PayoutSendError) return error;
  const { code: systemCode } = readThrown(error);
  const code = sendErrorCode(systemCode);
  return new PayoutSendError(code, `${wording[code](origin)} (${systemCode})`, { cause: error });
}

const bySystemCode: ReadonlyMap<string, SendErrorCode> = new Map([
  ["ECONNREFUSED", "connection-refused"],
  ["ENOTFOUND", "host-not-found"],
  ["EAI_AGAIN", "host-not-found"],
  ["ETIMEDOUT", "timed-out"],
  ["ECONNRESET", "connection-lost"],
  ["EPIPE", "connection-lost"],
  ["EADDRNOTAVAIL", "local-address-unavailable"],
  // connect() answers so when the local address is of the other family, or loopback towards elsewhere.
  ["EINVAL", "local-address-unavailable"],
  ["EPROTO", "not-http"],
]);
const certificateCode = /CERT|UNABLE_TO_|SELF_SIGNED|HOSTNAME_MISMATCH/;

const wording: Readonly<Record<SendErrorCode, (origin: string) => string>> = {
  "connection-refused": (origin) => `nothing listens at ${origin}`,
  "host-not-found": (origin) => `the host of ${origin} cannot be resolved`,
  "timed-out": (origin) => `${origin} did not answer in time`,
  "connection-lost": (origin) => `${origin} closed the connection before its answer was complete`,
  "certificate-rejected": (origin) =>
    `the certificate of ${origin} is not trusted; --ca names a file of its issuer`,
  "local-address-unavailable": (origin) => `the local address cannot be used to reach ${origin}`,
  "not-http": (origin) => `what listens at ${origin} does not speak that protocol`,
  "connection-failed": (origin) => `the connection to ${origin} failed`,
};

function sendErrorCode(systemCode: string): SendErrorCode {
  const known = bySystemCode.get(systemCode);
  if (known !== undefined) return known;
  if (certificateCode.test(systemCode)) return "certificate-rejected";
  if (/^(?:HPE_|ERR_SSL_)/.test(systemCode)) return "not-http";
  return "connection-failed";
}
