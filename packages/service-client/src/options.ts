import { assertFunction, assertKnownOptions, booleanOption, integerOption } from "@countersign/guard";
import { joinServiceUrl } from "./service-url.ts";

/** The part of the standard fetch that is used; `fetch` itself is one. */
export type FetchFunction = (url: string, init: RequestInit) => Promise<Response>;

/** Options of `createServiceClient`. */
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

/** The options with defaults, checked. */
export interface ResolvedOptions {
  readonly webhookEndpointsUrl: string;
  readonly apiKey: string;
  readonly fetch: FetchFunction;
  readonly timeoutMs: number;
  readonly retries: number;
  readonly retryDelayMs: number;
  readonly totalTimeoutMs: number;
  readonly allowLoopbackHttp: boolean;
}

const factory = "createServiceClient";
const known = [
  "baseUrl",
  "apiKey",
  "fetch",
  "timeoutMs",
  "retries",
  "retryDelayMs",
  "totalTimeoutMs",
  "dangerouslyAllowHttp",
];
const webhookEndpointsPath = "/api/v2/b2b-payments/webhook-endpoints";

/** Throws a TypeError that names the option, and shows neither the API key nor the base URL. */
export function resolveOptions(options: ServiceClientOptions): ResolvedOptions {
  assertKnownOptions(factory, options, known);
  const { baseUrl, apiKey, fetch, dangerouslyAllowHttp } = options;
  const allowLoopbackHttp = booleanOption(factory, "dangerouslyAllowHttp", dangerouslyAllowHttp, false);
  if (fetch !== undefined) assertFunction(factory, "fetch", fetch);
  const rules = { subject: `${factory}: option baseUrl`, allowLoopbackHttp };
  const webhookEndpointsUrl = joinServiceUrl(baseUrl, webhookEndpointsPath, rules);
  assertApiKey(apiKey);
  if (fetch === undefined) assertCertificatesAreVerified();
  return {
    webhookEndpointsUrl,
    apiKey,
    fetch: fetch ?? globalThis.fetch,
    timeoutMs: integerOption(factory, "timeoutMs", options.timeoutMs, {
      min: 1,
      max: 600_000,
      fallback: 10_000,
    }),
    retries: integerOption(factory, "retries", options.retries, { min: 0, max: 10, fallback: 3 }),
    retryDelayMs: integerOption(factory, "retryDelayMs", options.retryDelayMs, {
      min: 1,
      max: 10_000,
      fallback: 250,
    }),
    totalTimeoutMs: integerOption(factory, "totalTimeoutMs", options.totalTimeoutMs, {
      min: 1,
      max: 3_600_000,
      fallback: 60_000,
    }),
    allowLoopbackHttp,
  };
}

function assertApiKey(apiKey: unknown): void {
  if (typeof apiKey !== "string" || apiKey === "") {
    throw new TypeError(`${factory}: option apiKey must be a non-empty string`);
  }
  if (!/^[\x21-\x7e]+$/.test(apiKey)) {
    throw new TypeError(`${factory}: option apiKey must be printable ASCII without spaces and line ends`);
  }
}

// The global fetch cannot be told to verify: it follows this variable, and the API key would go to whoever answers.
function assertCertificatesAreVerified(): void {
  if (process.env["NODE_TLS_REJECT_UNAUTHORIZED"] !== "0") return;
  throw new TypeError(
    `${factory}: NODE_TLS_REJECT_UNAUTHORIZED=0 turns off the verification of certificates; ` +
      "unset it, and name the issuer's file in NODE_EXTRA_CA_CERTS",
  );
}
