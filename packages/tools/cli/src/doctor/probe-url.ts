import { readCapped } from "@countersign/service-client";
import { UsageError } from "../command-io.ts";
import { oneLine } from "../operator/store-failure.ts";
import { assertHttpAllowed } from "../plain-http.ts";
import { printable } from "../printable.ts";
import { codeOf, messageOf } from "../thrown.ts";
import { clockFinding } from "./clock-finding.ts";
import { findingsOf, type Finding, type Found } from "./findings.ts";

/** Where to ask, and how. */
export interface ProbeOptions {
  readonly url: string;
  readonly allowHttp: boolean | undefined;
  readonly timeoutMs: number;
}

// No instruction and no webhook: no signature, no credentials, and nothing that any handler could read as one.
const probes = [
  { name: "text", type: "text/plain", body: "countersign doctor" },
  { name: "json", type: "application/json", body: "{" },
] as const;

// A problem document has some hundred bytes; what answers is not trusted.
const limitBytes = 65_536;

interface Answer {
  readonly status: number;
  readonly code: string | undefined;
  readonly dateMs: number;
  readonly sentMs: number;
  readonly receivedMs: number;
}

/** Checks the flag; throws a UsageError. */
export function assertProbe({ url, allowHttp }: Pick<ProbeOptions, "url" | "allowHttp">): void {
  if (!URL.canParse(url) || !/^https?:\/\/[^@]*$/i.test(url)) {
    throw new UsageError("--url: expected http://host/path or https://host/path, without credentials");
  }
  assertHttpAllowed("--url", url, allowHttp);
}

/** Sends two requests that must be refused to an endpoint, and looks at how. */
export async function urlFindings({ url, timeoutMs }: ProbeOptions): Promise<readonly Finding[]> {
  const found = findingsOf(printable(url));
  const answers: Answer[] = [];
  for (const probe of probes) {
    try {
      // oxlint-disable-next-line no-await-in-loop -- one after the other, for the clock
      answers.push(await send(url, probe, timeoutMs));
    } catch (error) {
      return [found("url-unreachable", reasonOf(error))];
    }
  }
  const [text, json] = answers;
  if (text === undefined || json === undefined) return [];
  return [...plainHttp(found, url), ...fromAnswers(found, text, json), ...clockFinding(found, clockOf(text))];
}

function clockOf({ dateMs, sentMs, receivedMs }: Answer): Parameters<typeof clockFinding>[1] {
  return { theirsMs: dateMs, sentMs, receivedMs };
}

async function send(
  url: string,
  { type, body }: (typeof probes)[number],
  timeoutMs: number,
): Promise<Answer> {
  const sentMs = Date.now();
  const response = await fetch(url, {
    method: "POST",
    headers: { "Content-Type": type, Accept: "application/json", "User-Agent": "countersign-doctor" },
    body,
    redirect: "manual",
    signal: AbortSignal.timeout(timeoutMs),
  });
  const receivedMs = Date.now();
  const code = problemCode((await readCapped(response, limitBytes)).bytes.toString("utf8"));
  const dateMs = Date.parse(response.headers.get("date") ?? "");
  return { status: response.status, code, dateMs, sentMs, receivedMs };
}

function plainHttp(found: Found, url: string): readonly Finding[] {
  const { protocol, hostname } = new URL(url);
  const isLocal = /^(?:localhost|127\.\d+\.\d+\.\d+|\[::1\])$/.test(hostname);
  return protocol === "http:" && !isLocal ? [found("url-plain-http", "it is called over plain http")] : [];
}

const refusals = new Set([401, 403, 404]);

function fromAnswers(found: Found, text: Answer, json: Answer): readonly Finding[] {
  const findings = fromRefusal(found, text);
  // A guard refuses both before it looks at the body.
  if (json.status === 400 && text.status !== 400) {
    const message = `broken JSON without a signature is answered 400, anything else ${text.status}: a body parser comes first`;
    findings.push(found("parser-before-guard", message));
  }
  return findings;
}

function fromRefusal(found: Found, { status, code }: Answer): Finding[] {
  if (code === "trust-proxy-unsafe") {
    return [found("trust-proxy-everybody", "trust proxy trusts every address: it refuses everybody (500)")];
  }
  if (code === "body-already-consumed") {
    return [found("parser-before-guard", "a body parser reads the body before the guard (500)")];
  }
  if (status >= 500) {
    const shown = code === undefined ? String(status) : `${status} ${printable(code.slice(0, 100))}`;
    return [found("url-error", `a request without a signature is answered ${shown}, not 401`)];
  }
  if (status === 404) {
    return [
      found("url-not-found", "it answers 404: a webhook endpoint that hides, or a path that is not there"),
    ];
  }
  if (refusals.has(status)) return [];
  const message = `a request without signature and credentials is answered ${status}, not 401`;
  return [found("url-unguarded", message)];
}

function problemCode(body: string): string | undefined {
  try {
    const document: unknown = JSON.parse(body);
    const code =
      typeof document === "object" && document !== null && "code" in document ? document.code : undefined;
    return typeof code === "string" ? code : undefined;
  } catch {
    return undefined;
  }
}

// Of fetch: a TypeError with the error of the connection as its cause, or the signal's reason.
function reasonOf(error: unknown): string {
  if (memberOf(error, "name") === "TimeoutError") return "it did not answer in time";
  const cause = memberOf(error, "cause") ?? error;
  const code = codeOf(cause);
  return code === "no code" ? oneLine(messageOf(cause)) : `it cannot be reached (${printable(code)})`;
}

function memberOf(value: unknown, name: "name" | "cause"): unknown {
  return typeof value === "object" && value !== null ? Reflect.get(value, name) : undefined;
}
