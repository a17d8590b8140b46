import {
  createServiceClient,
  ServiceClientError,
  type ServiceClientErrorCode,
  type WebhookEndpoint,
} from "countersign/client";
import { generateEndpoint, type GeneratedEndpoint } from "countersign/webhooks";
import type { CommandIo, Finish, Switches, Texts } from "../command-io.ts";
import { exitCodes, UsageError, usageErrorOf } from "../command-io.ts";
import { assertHttpsOrLoopback, parseInteger, parseTimeout } from "../input.ts";
import { bodyLines, createPaint, jsonDocument, printable } from "../output.ts";

type ServiceClientOptions = Parameters<typeof createServiceClient>[0];

export interface CreateFlags
  extends Texts<"url" | "username" | "password" | "secret" | "platformUrl">, Switches<"generate" | "json"> {
  readonly baseUrl: string;
  readonly apiKey: string;
  readonly timeout: string;
  readonly retries: string;
}

export interface GenerateFlags extends Switches<"json"> {
  readonly platformUrl: string;
}

/** Sends nothing. */
export function makeUpEndpoint({ platformUrl, json }: GenerateFlags, io: CommandIo): void {
  if (!/^https:/i.test(platformUrl))
    throw new UsageError("--platform-url must be an https URL: the service takes no other");
  const generated = generate(platformUrl);
  io.writeOut(json === true ? jsonDocument({ ...generated }) : generatedText(generated));
}

function generatedText(generated: GeneratedEndpoint): string {
  const lines = [
    `url       ${generated.url}`,
    ...secretLines(generated),
    "Give these to the platform and keep them secret: they are shown this once.",
    "",
    "For customer support, by a way that nobody else can read:",
    jsonDocument({ ...generated.supportForm }).trimEnd(),
  ];
  return `${lines.join("\n")}\n`;
}

/** Registers the endpoint at the service. */
export async function createEndpoint(
  flags: CreateFlags,
  { io, finish }: { readonly io: CommandIo; readonly finish: Finish },
): Promise<void> {
  const report = await register(flags);
  io.writeOut(flags.json === true ? reportJson(report) : reportText(report, io.colours));
  if (report.error === undefined) return;
  finish(unanswered.has(report.error.code) ? exitCodes.unreachable : exitCodes.otherwise);
}

const unanswered: ReadonlySet<ServiceClientErrorCode> = new Set([
  "timeout",
  "network",
  "certificate-rejected",
]);

interface EndpointReport {
  readonly url: string;
  readonly answer?: { readonly status: number; readonly body: unknown };
  readonly error?: ServiceClientError;
  /** Shown this once, unless the service has certainly refused it. */
  readonly generated: GeneratedEndpoint | undefined;
}

async function register(flags: CreateFlags): Promise<EndpointReport> {
  // The spec's "Webhook endpoint configuration": only HTTPS is accepted.
  const because = "the service takes https endpoints alone";
  assertHttpsOrLoopback("--url", flags.url, because);
  assertHttpsOrLoopback("--platform-url", flags.platformUrl, because);
  const generated =
    flags.generate === true ? generate(given(flags.platformUrl, "--platform-url")) : undefined;
  const endpoint = endpointOf(flags, generated);
  const { url } = endpoint;
  const { baseUrl, apiKey, timeout, retries } = flags;
  assertHttpsOrLoopback("--base-url", baseUrl, "the request carries the API key and the endpoint's secrets");
  const options: ServiceClientOptions = {
    baseUrl,
    apiKey,
    timeoutMs: parseTimeout(timeout),
    retries: parseInteger("--retries", retries, { min: 0, max: 10 }),
    // http to this machine alone: the client sends the API key and the credentials to no other.
    dangerouslyAllowHttp: true,
  };
  try {
    const answer = await createServiceClient(options).createWebhookEndpoint(endpoint);
    return { url, answer, generated };
  } catch (error) {
    if (error instanceof ServiceClientError) {
      // Without a final answer the endpoint may exist, and nobody else knows its credentials.
      const isRefused = error.code === "rejected" || error.code === "certificate-rejected";
      return { url, error, generated: isRefused ? undefined : generated };
    }
    // Before anything is sent, only the command line can be wrong.
    if (error instanceof TypeError) throw usageErrorOf(error);
    throw error;
  }
}

function endpointOf(flags: CreateFlags, generated: GeneratedEndpoint | undefined): WebhookEndpoint {
  if (generated === undefined && flags.platformUrl !== undefined)
    throw new UsageError("--platform-url goes with --generate; or give --url");
  const { url, username, password, secret } = generated ?? flags;
  return {
    url: given(url, "--url"),
    authUsername: given(username, "--username"),
    authPassword: given(password, "--password"),
    signatureSecret: given(secret, "--secret"),
  };
}

/** Takes http to this machine, as a sandbox does. Throws a UsageError. */
function generate(baseUrl: string): GeneratedEndpoint {
  try {
    return generateEndpoint({ baseUrl, dangerouslyAllowHttp: true });
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

/** Given credentials are not shown. */
function reportText(report: EndpointReport, colours: boolean): string {
  const { url, answer, error, generated } = report;
  const paint = createPaint(colours);
  const id = idOf(report);
  const lines = [
    answer === undefined
      ? paint("red", `not created: ${printable(error?.message ?? "")}`)
      : paint("green", `created (status ${answer.status})`),
    ...(error?.retryAfterSeconds === undefined ? [] : [`  Retry-After: ${error.retryAfterSeconds} s`]),
    ...bodyLines(error?.body ?? ""),
    ...(id === undefined ? [] : [`id        ${printable(String(id))}`]),
    `url       ${printable(url)}`,
  ];
  if (generated !== undefined) {
    lines.push(
      ...secretLines(generated),
      error === undefined
        ? "Give these to the platform and keep them secret: they are shown this once."
        : "The endpoint may exist all the same: keep these until it is certain.",
    );
  }
  return `${lines.join("\n")}\n`;
}

function secretLines({ path, username, password, secret }: GeneratedEndpoint): readonly string[] {
  return [`path      ${path}`, `username  ${username}`, `password  ${password}`, `secret    ${secret}`];
}

/** Of a success it holds the id alone: the rest of the answer may repeat credentials. */
function reportJson(report: EndpointReport): string {
  const { url, answer, error, generated = null } = report;
  return jsonDocument({
    created: answer !== undefined,
    status: answer?.status ?? error?.status ?? null,
    id: idOf(report) ?? null,
    url,
    error:
      error === undefined
        ? null
        : {
            code: error.code,
            message: error.message,
            body: error.body ?? null,
            retryAfterSeconds: error.retryAfterSeconds ?? null,
          },
    generated,
  });
}

/** The spec shows no body; the sandbox, and most services, answer with an id. */
function idOf({ answer }: EndpointReport): string | number | undefined {
  const body = answer?.body;
  const id = typeof body === "object" && body !== null && "id" in body ? body.id : undefined;
  return typeof id === "string" || typeof id === "number" ? id : undefined;
}
