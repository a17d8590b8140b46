import { OptionError } from "@countersign/core";
import {
  option,
  readOptions,
  type OptionOwner,
  type OptionTable,
  type ReadOptions,
} from "@countersign/core/door";
import { appendPath, baseUrlFault } from "./service-url.ts";

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

/** The options with defaults, checked. */
export interface ResolvedClientOptions extends Omit<
  ReadOptions<typeof table>,
  "baseUrl" | "dangerouslyAllowHttp"
> {
  readonly fetch: FetchFunction;
  readonly webhookEndpointsUrl: string;
  readonly allowLoopbackHttp: boolean;
}

const webhookEndpointsPath = "/api/v2/b2b-payments/webhook-endpoints";

/** Throws an OptionError, which shows neither the API key nor the base URL. */
export function resolveOptions(options: ServiceClientOptions): ResolvedClientOptions {
  const {
    baseUrl,
    dangerouslyAllowHttp: allowLoopbackHttp,
    fetch,
    ...read
  } = readOptions(factoryName, table, options);
  const fault = baseUrlFault(baseUrl, allowLoopbackHttp);
  if (fault !== undefined) throw new OptionError(factoryName, { option: "baseUrl", what: fault });
  if (fetch === undefined) assertCertificatesAreVerified();
  return {
    ...read,
    webhookEndpointsUrl: appendPath(baseUrl, webhookEndpointsPath),
    allowLoopbackHttp,
    fetch: fetch ?? globalThis.fetch,
  };
}

/** The rule of a URL; {@link serviceUrlFault} says what it may be. */
export function readUrl(url: unknown, owner: OptionOwner, name: string): string {
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

// The global fetch cannot be told to verify: it follows this variable, and the API key would go to whoever answers.
function assertCertificatesAreVerified(): void {
  if (process.env["NODE_TLS_REJECT_UNAUTHORIZED"] !== "0") return;
  const what =
    "NODE_TLS_REJECT_UNAUTHORIZED=0 turns off the verification of certificates; " +
    "unset it, and name the issuer's file in NODE_EXTRA_CA_CERTS";
  throw new OptionError(factoryName, { what });
}
