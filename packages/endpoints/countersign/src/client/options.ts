import { OptionError } from "@countersign/core";
import {
  option,
  readOptions,
  readSecretText,
  readUserName,
  type OptionOwner,
  type OptionTable,
} from "@countersign/core/internal";
import { appendPath, baseUrlFault, serviceUrlFault } from "./service-url.ts";

/** The part of the standard fetch that is used. */
export type FetchFunction = (url: string, init: RequestInit) => Promise<Response>;

export interface ServiceClientOptions {
  /** The service's https address. A path is kept, one slash at its end is ignored; a query or credentials are refused. */
  readonly baseUrl: string;
  /** Sent as X-API-KEY: printable ASCII without spaces. */
  readonly apiKey: string;
  /** Default the global fetch. */
  readonly fetch?: FetchFunction | undefined;
  /** For one request, from its start to the last byte of the answer. 1 to 600,000, default 10,000. */
  readonly timeoutMs?: number | undefined;
  /** Further requests after a first one without a final answer. 0 to 10, default 3. */
  readonly retries?: number | undefined;
  /** Before the first retry, up to twice as long at random; doubles each time, up to 10 s. 1 to 10,000, default 250. */
  readonly retryDelayMs?: number | undefined;
  /** For all requests of a call and the waits between them. 1 to 3,600,000, default 60,000. */
  readonly totalTimeoutMs?: number | undefined;
  /** Accept http for `baseUrl` and for the registered `url` where their host is loopback. Default false. */
  readonly dangerouslyAllowHttp?: boolean | undefined;
}

const factoryName = "createServiceClient";

export const table = {
  baseUrl: option.own(readUrl),
  apiKey: option.own(readApiKey),
  fetch: option.optional(option.call<FetchFunction>(), "the global one"),
  timeoutMs: option.integer({ min: 1, max: 600_000, fallback: 10_000 }),
  retries: option.integer({ min: 0, max: 10, fallback: 3 }),
  retryDelayMs: option.integer({ min: 1, max: 10_000, fallback: 250 }),
  totalTimeoutMs: option.integer({ min: 1, max: 3_600_000, fallback: 60_000 }),
  dangerouslyAllowHttp: option.boolean(false),
} satisfies OptionTable<ServiceClientOptions, unknown>;

export type ResolvedClientOptions = ReturnType<typeof resolveOptions>;

const webhookEndpointsPath = "/api/v2/b2b-payments/webhook-endpoints";

/** Throws an OptionError, which shows neither the API key nor the base URL. */
export function resolveOptions(options: ServiceClientOptions) {
  const given = readOptions(factoryName, table, options);
  const { baseUrl, dangerouslyAllowHttp: allowLoopbackHttp, fetch, ...read } = given;
  const fault = baseUrlFault(baseUrl, allowLoopbackHttp);
  if (fault !== undefined) throw new OptionError(factoryName, { option: "baseUrl", what: fault });
  if (fetch === undefined) assertCertificatesAreVerified(factoryName);
  return {
    ...read,
    webhookEndpointsUrl: appendPath(baseUrl, webhookEndpointsPath),
    allowLoopbackHttp,
    fetch: fetch ?? globalThis.fetch,
  };
}

function readUrl(url: unknown, owner: OptionOwner, name: string): string {
  if (typeof url === "string") return url;
  throw new OptionError(owner, { option: name, what: "must be a string" });
}

function readApiKey(apiKey: unknown, owner: OptionOwner, name: string): string {
  if (typeof apiKey !== "string" || apiKey === "") {
    throw new OptionError(owner, { option: name, what: "must be a non-empty string" });
  }
  if (/^[\x21-\x7e]+$/.test(apiKey)) return apiKey;
  const what = "must be printable ASCII without spaces and line ends";
  throw new OptionError(owner, { option: name, what });
}

/** Throws an OptionError where the global fetch would send an API key to any server. */
export function assertCertificatesAreVerified(owner: OptionOwner): void {
  if (process.env["NODE_TLS_REJECT_UNAUTHORIZED"] !== "0") return;
  const what =
    "NODE_TLS_REJECT_UNAUTHORIZED=0 turns off the verification of certificates; " +
    "unset it, and name the issuer's file in NODE_EXTRA_CA_CERTS";
  throw new OptionError(owner, { what });
}

/** Where the service calls, and how it authenticates itself there. */
export interface WebhookEndpoint {
  /** https, without credentials and fragment; sent exactly as given. */
  readonly url: string;
  /** Username of HTTP basic authentication: not empty, no colon, no control characters (RFC 7617 section 2). */
  readonly authUsername: string;
  /** Not empty, no control characters. */
  readonly authPassword: string;
  /** Key of the HMAC in X-Payload-Signature: not empty, no control characters. */
  readonly signatureSecret: string;
}

export const callName = "createWebhookEndpoint";

const endpointTable: OptionTable<WebhookEndpoint> = {
  url: option.own(readUrl),
  authUsername: option.own(readUserName),
  authPassword: option.own(readSecretText),
  signatureSecret: option.own(readSecretText),
};

/** The JSON body of the request. Throws an OptionError, which shows no value, on what a receiver could never verify. */
export function serializeWebhookEndpoint(endpoint: WebhookEndpoint, allowLoopbackHttp: boolean): string {
  const { url, authUsername, authPassword, signatureSecret } = readOptions(callName, endpointTable, endpoint);
  const fault = serviceUrlFault(url, allowLoopbackHttp);
  if (fault !== undefined) throw new OptionError(callName, { option: "url", what: fault });
  return JSON.stringify({
    url,
    auth_username: authUsername,
    auth_password: authPassword,
    signature_secret: signatureSecret,
  });
}
