import {
  assertKnownOptions,
  booleanOption,
  createTrustInspector,
  createWarnOnce,
  GuardError,
  guard,
  integerOption,
  type GuardRequest,
  type Middleware,
  type TrustFunction,
} from "@countersign/guard";
import { fieldLines } from "@countersign/raw-body";

/** Options of {@link httpsOnly}. */
export interface HttpsOnlyOptions {
  /** Let plain HTTP pass, for local work. Default false; true throws when NODE_ENV is `production`. */
  readonly dangerouslyAllowHttp?: boolean | undefined;
  /** HTTP status of a refusal, 400 to 499. Default 403. */
  readonly status?: number | undefined;
}

/**
 * Admits requests that came over HTTPS (spec, "Calls from the service to a webhook endpoint"), and refuses all others with 403
 * `https-required`. HTTPS is a TLS socket, or one X-Forwarded-Proto line that is exactly `https` from a peer that the app's
 * `trust proxy` setting trusts; what such a peer says also counts when its own connection is TLS. Refuses everything with 500
 * `trust-proxy-unsafe` while that setting trusts everybody, as ipAllowlist does. Throws a TypeError on a bad option.
 */
export function httpsOnly(options: HttpsOnlyOptions = {}): Middleware {
  assertKnownOptions("httpsOnly", options, ["dangerouslyAllowHttp", "status"]);
  const allowHttp = booleanOption("httpsOnly", "dangerouslyAllowHttp", options.dangerouslyAllowHttp, false);
  const status = integerOption("httpsOnly", "status", options.status, { min: 400, max: 499, fallback: 403 });
  if (allowHttp) refuseHttpInProduction();

  const inspectTrust = createTrustInspector(createWarnOnce("httpsOnly"));
  return guard("httpsOnly", (req) => {
    if (!allowHttp && !isHttps(req, inspectTrust(req))) throw httpsRequired(status);
  });
}

function refuseHttpInProduction(): void {
  if (process.env["NODE_ENV"] !== "production") return;
  throw new TypeError(
    "httpsOnly: option dangerouslyAllowHttp must not be true when NODE_ENV is production: the password would travel in clear; " +
      "serve HTTPS, or set the app's trust proxy setting to the address of the proxy that does",
  );
}

// req.secure would take the first of "https, http", which is what the caller wrote.
function isHttps(req: GuardRequest, trust: TrustFunction | undefined): boolean {
  const forwardedProto = fieldLines(req, "x-forwarded-proto");
  if (forwardedProto.length > 0 && trust?.(req.socket.remoteAddress, 0)) {
    return forwardedProto.length === 1 && forwardedProto[0] === "https";
  }
  return "encrypted" in req.socket && req.socket.encrypted === true;
}

function httpsRequired(status: number): GuardError {
  return new GuardError({
    status,
    code: "https-required",
    message:
      "the request did not come over HTTPS: its socket is not TLS, and no trusted proxy says https in one X-Forwarded-Proto line",
  });
}
