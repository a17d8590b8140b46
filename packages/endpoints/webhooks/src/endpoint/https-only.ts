import {
  createWarnOnce,
  GuardError,
  option,
  OptionError,
  readOptions,
  type OptionOwner,
  type OptionTable,
  type ReceivedRequest,
} from "@countersign/core";
import {
  createTrustInspector,
  guard,
  isHttps,
  type GuardRequest,
  type Middleware,
} from "@countersign/express";
import type { WebhookCode } from "../codes.ts";

/** Options of {@link httpsOnly}. */
export interface HttpsOnlyOptions {
  /** Let plain HTTP pass, for local work. Default false; true throws when NODE_ENV is `production`. */
  readonly dangerouslyAllowHttp?: boolean | undefined;
  /** HTTP status of a refusal, 400 to 499. Default 403. */
  readonly status?: number | undefined;
}

const factory = "httpsOnly";

export const table: OptionTable<HttpsOnlyOptions> = {
  dangerouslyAllowHttp: option.shown(option.boolean(false)),
  status: option.integer({ min: 400, max: 499, fallback: 403 }),
};

/**
 * Admits requests that came over HTTPS (spec, "Calls from the service to a webhook endpoint"), and refuses all others with 403
 * `https-required`. HTTPS is a TLS socket, or one X-Forwarded-Proto line that is exactly `https` from a peer that the app's
 * `trust proxy` setting trusts; what such a peer says also counts when its own connection is TLS. Refuses everything with 500
 * `trust-proxy-unsafe` while that setting trusts everybody, as ipAllowlist does. Throws a TypeError on a bad option.
 */
export function httpsOnly(options: HttpsOnlyOptions = {}): Middleware {
  return guard(factory, expressHttps(options));
}

/** The check of {@link httpsOnly}, for an endpoint that is made of several: `owner` has the options, in messages. */
export function expressHttps(
  options: HttpsOnlyOptions,
  owner: OptionOwner = factory,
): (req: GuardRequest) => void {
  const admit = httpsAdmission(options, owner);
  const inspectTrust = createTrustInspector(createWarnOnce(factory));
  return (req) => admit(() => (isHttps(req, inspectTrust(req)) ? "https" : "http"));
}

/** {@link httpsOnly} for what a door says of the scheme, which is asked only where it decides. Throws an OptionError. */
export function httpsAdmission(
  options: HttpsOnlyOptions,
  owner: OptionOwner = factory,
): (schemeOf: () => ReceivedRequest["scheme"]) => void {
  const { dangerouslyAllowHttp, status } = readOptions(owner, table, options);
  if (dangerouslyAllowHttp) refuseHttpInProduction(owner);
  return (schemeOf) => {
    if (!dangerouslyAllowHttp && schemeOf() !== "https") throw httpsRequired(status);
  };
}

function refuseHttpInProduction(owner: OptionOwner): void {
  if (process.env["NODE_ENV"] !== "production") return;
  const what =
    "must not be true when NODE_ENV is production: the password would travel in clear; " +
    "serve HTTPS, or set the app's trust proxy setting to the address of the proxy that does";
  throw new OptionError(owner, { option: "dangerouslyAllowHttp", what });
}

function httpsRequired(status: number): GuardError<WebhookCode> {
  return new GuardError<WebhookCode>({
    status,
    code: "https-required",
    message:
      "the request did not come over HTTPS: its socket is not TLS, and no trusted proxy says https in one X-Forwarded-Proto line",
  });
}
