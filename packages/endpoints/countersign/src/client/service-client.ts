import {
  hasMethods,
  option,
  optionError,
  readOptions,
  type OptionOwner,
  type OptionTable,
} from "@countersign/core/internal";
import { exchange, type Answer } from "./exchange.ts";
import { callName, resolveOptions, serializeWebhookEndpoint } from "./options.ts";
import type { ResolvedClientOptions, ServiceClientOptions, WebhookEndpoint } from "./options.ts";
import { redact } from "./redact.ts";
import { parseRetryAfter, withRetries } from "./retry.ts";
import { ServiceClientError, type ServiceClientErrorCode } from "./service-client-error.ts";

export interface CreateOptions {
  /** Ends the call, its waits included, with a ServiceClientError of code `aborted`. */
  readonly signal?: AbortSignal | undefined;
}

export const createTable = {
  signal: option.optional(option.own(readSignal)),
} satisfies OptionTable<CreateOptions, unknown>;

/** The service's 2xx answer. The spec shows neither its status nor its body. */
interface WebhookEndpointAnswer {
  readonly status: number;
  /** The parsed JSON, as it came: it may repeat the credentials. Undefined when the body was empty. */
  readonly body: unknown;
}

/** Calls the lending service's API. Neither inspecting nor serialising it shows the API key. */
export interface ServiceClient {
  /**
   * Registers a webhook endpoint, beside those that exist. Rejects with a ServiceClientError, or a TypeError before anything is sent.
   * Without answer it is sent again unless `retries` is 0: a URL registered twice is harmless with deduplication by event_id.
   */
  readonly createWebhookEndpoint: (
    endpoint: WebhookEndpoint,
    options?: CreateOptions,
  ) => Promise<WebhookEndpointAnswer>;
}

const errorBodyLength = 4096;

/** Creates a client of the lending service's API. Throws an OptionError when an option is unusable. */
export function createServiceClient(options: ServiceClientOptions): ServiceClient {
  const resolved = resolveOptions(options);
  return Object.freeze({
    createWebhookEndpoint: (endpoint: WebhookEndpoint, createOptions: CreateOptions = {}) =>
      createWebhookEndpoint(resolved, endpoint, createOptions),
  });
}

async function createWebhookEndpoint(
  { webhookEndpointsUrl: url, apiKey, fetch, timeoutMs, allowLoopbackHttp, ...limits }: ResolvedClientOptions,
  endpoint: WebhookEndpoint,
  createOptions: CreateOptions,
): Promise<WebhookEndpointAnswer> {
  const { signal: stop } = readOptions(callName, createTable, createOptions);
  const body = serializeWebhookEndpoint(endpoint, allowLoopbackHttp);
  const { authUsername, authPassword, signatureSecret } = endpoint;
  const basic = Buffer.from(`${authUsername}:${authPassword}`, "utf8").toString("base64");
  // What must not be shown where the service repeats it.
  const secrets = [apiKey, authPassword, signatureSecret, basic];
  const headers = { Accept: "application/json", "Content-Type": "application/json", "X-API-KEY": apiKey };
  const request = { fetch, url, headers, body, timeoutMs };
  return withRetries(async (signal) => readAnswer(await exchange({ ...request, signal }), secrets), {
    ...limits,
    signal: stop,
  });
}

function readSignal(signal: unknown, owner: OptionOwner, name: string): AbortSignal {
  // A signal of another realm, or of a polyfill, is no instance of AbortSignal.
  if (hasMethods<AbortSignal>(signal, "addEventListener") && "aborted" in signal) return signal;
  throw optionError(owner, name, "an AbortSignal", signal);
}

/** A 2xx with JSON or without a body is a success; everything else throws a ServiceClientError. */
function readAnswer(answer: Answer, secrets: readonly string[]): WebhookEndpointAnswer {
  const { status } = answer;
  if (status < 200 || status > 299) throw answerError(refusalOf(status), answer, secrets);
  if (answer.bytes.length === 0) return { status, body: undefined };
  // A page of a proxy or of a wrong address must not pass for a registration.
  if (answer.truncated) throw answerError("invalid-response", answer, secrets);
  try {
    const text = new TextDecoder("utf-8", { fatal: true }).decode(answer.bytes);
    return { status, body: JSON.parse(text) as unknown };
  } catch {
    // The error of JSON.parse quotes its input.
    throw answerError("invalid-response", answer, secrets);
  }
}

function refusalOf(status: number): Refusal {
  if (status >= 500 || status === 408 || status === 429) return "unavailable";
  // A fetch for browsers shows a redirect as status 0.
  return status < 400 ? "redirect-refused" : "rejected";
}

type Refusal = keyof typeof wording;

const wording = {
  rejected: "the service refused the webhook endpoint",
  unavailable: "the service is unavailable or limits the rate",
  "redirect-refused":
    "the service answered with a redirect, which the API key does not follow; check baseUrl",
  "invalid-response":
    "the service answered 2xx with more than 64 KiB or with a body that is no JSON; " +
    "check baseUrl, the endpoint may exist",
} satisfies Partial<Record<ServiceClientErrorCode, string>>;

function answerError(code: Refusal, answer: Answer, secrets: readonly string[]): ServiceClientError {
  const { status, bytes, truncated } = answer;
  return new ServiceClientError(code, `${wording[code]} (status ${status})`, {
    status,
    body: redact({ text: bytes.toString("utf8"), truncated }, secrets).slice(0, errorBodyLength),
    retryAfterSeconds: parseRetryAfter(answer.retryAfter, Date.now()),
  });
}
