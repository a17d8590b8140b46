import type { ServiceClientOptions, WebhookEndpoint } from "@countersign/service-client";
import { generateEndpoint, type GeneratedEndpoint } from "@countersign/webhooks";
import { UsageError } from "./command-io.ts";
import { parseInteger } from "./input.ts";
import { assertHttpsOrLoopback } from "./plain-http.ts";
import { usageErrorOf } from "./usage-error.ts";

/** The flags of `countersign endpoint create`. */
export interface EndpointFlags {
  readonly baseUrl: string;
  readonly apiKey: string;
  readonly url?: string | undefined;
  readonly username?: string | undefined;
  readonly password?: string | undefined;
  readonly secret?: string | undefined;
  readonly generate?: boolean | undefined;
  readonly platformUrl?: string | undefined;
  readonly allowHttp?: boolean | undefined;
  readonly timeout: string;
  readonly retries: string;
}

/** The endpoint to register; `generated` when its path and credentials were made up here. */
export interface EndpointInput {
  readonly endpoint: WebhookEndpoint;
  readonly generated: GeneratedEndpoint | undefined;
}

/** The endpoint that the flags describe. Throws a UsageError. */
export function readEndpoint(flags: EndpointFlags): EndpointInput {
  // The spec's "Webhook endpoint configuration": only HTTPS is accepted.
  const because = "the service takes https endpoints alone";
  assertHttpsOrLoopback("--url", flags.url, because);
  assertHttpsOrLoopback("--platform-url", flags.platformUrl, because);
  if (flags.generate === true) return generate(flags);
  if (flags.platformUrl !== undefined)
    throw new UsageError("--platform-url goes with --generate; or give --url");
  const endpoint = {
    url: given(flags.url, "--url"),
    authUsername: given(flags.username, "--username"),
    authPassword: given(flags.password, "--password"),
    signatureSecret: given(flags.secret, "--secret"),
  };
  return { endpoint, generated: undefined };
}

/** Options of the client that the flags describe; the client checks them. Throws a UsageError. */
export function readClientOptions(flags: EndpointFlags): ServiceClientOptions {
  const { baseUrl, apiKey } = flags;
  assertHttpsOrLoopback("--base-url", baseUrl, "the request carries the API key and the endpoint's secrets");
  return {
    baseUrl,
    apiKey,
    timeoutMs: parseInteger("--timeout", flags.timeout, { min: 1, max: 600_000 }),
    retries: parseInteger("--retries", flags.retries, { min: 0, max: 10 }),
    // http to this machine alone, whatever is allowed: the client sends the API key and the credentials to no other.
    dangerouslyAllowHttp: true,
  };
}

function generate({ platformUrl }: EndpointFlags): EndpointInput {
  const baseUrl = given(platformUrl, "--platform-url");
  try {
    const generated = generateEndpoint({ baseUrl, dangerouslyAllowHttp: true });
    const { url, username, password, secret } = generated;
    const endpoint = { url, authUsername: username, authPassword: password, signatureSecret: secret };
    return { endpoint, generated };
  } catch (error) {
    const { message } = usageErrorOf(error);
    throw new UsageError(message.replace("--base-url", "--platform-url"), { cause: error });
  }
}

function given(value: string | undefined, flag: string): string {
  if (value === undefined)
    throw new UsageError(`${flag} is missing; --generate makes up the path and the credentials`);
  return value;
}
