import { readCapped } from "countersign/client";
import { codeOf, memberOf, messageOf, UsageError } from "../command-io.ts";
import { assertHttpAllowed, isPlainToOthers } from "../input.ts";
import { oneLine } from "../operator/store-failure.ts";
import { printable } from "../output.ts";
import { clockFinding, findingsOf, type Finding, type FindingId } from "./findings.ts";

// No signature and no credentials, and nothing that any handler could read as an instruction or webhook.
const probes = {
  text: { type: "text/plain", body: "countersign doctor" },
  json: { type: "application/json", body: "{" },
} as const;

// A problem document has some hundred bytes; the answering server is untrusted.
const limitBytes = 65_536;

interface Answer {
  readonly status: number;
  readonly code: string | undefined;
  readonly clock: Parameters<typeof clockFinding>[1];
}

export function assertProbe(url: string, allowHttp: boolean | undefined): void {
  if (!URL.canParse(url) || !/^https?:\/\/[^@]*$/i.test(url)) {
    throw new UsageError("--url: expected http://host/path or https://host/path, without credentials");
  }
  assertHttpAllowed("--url", url, allowHttp);
}

export async function urlFindings(url: string, timeoutMs: number): Promise<readonly Finding[]> {
  const found = findingsOf(printable(url));
  let text: Answer;
  let json: Answer;
  try {
    // One after the other, for the clock.
    text = await send(url, probes.text, timeoutMs);
    json = await send(url, probes.json, timeoutMs);
  } catch (error) {
    return [found("url-unreachable", reasonOf(error))];
  }
  const findings: Finding[] = [];
  if (isPlainToOthers(url)) findings.push(found("url-plain-http", "it is called over plain http"));
  const refusal = faultOfRefusal(text);
  if (refusal !== undefined) findings.push({ ...found(...refusal), code: text.code });
  // A guard refuses both before it looks at the body.
  if (json.status === 400 && text.status !== 400) {
    const message = `broken JSON without a signature is answered 400, anything else ${text.status}: a body parser comes first`;
    findings.push(found("parser-in-front", message));
  }
  return [...findings, ...clockFinding(found, text.clock)];
}

async function send(
  url: string,
  { type, body }: (typeof probes)[keyof typeof probes],
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
  const theirsMs = Date.parse(response.headers.get("date") ?? "");
  return { status: response.status, code, clock: { theirsMs, sentMs, receivedMs } };
}

const refusals = new Set([401, 403]);

function faultOfRefusal({ status, code }: Answer): [id: FindingId, message: string] | undefined {
  if (code === "trust-proxy-unsafe") {
    return ["trust-proxy-everybody", "trust proxy trusts every address: it refuses everybody (500)"];
  }
  if (code === "body-already-consumed") {
    return ["parser-before-guard", "a body parser reads the body before the guard (500)"];
  }
  if (status >= 500) {
    const shown = code === undefined ? String(status) : `${status} ${printable(code.slice(0, 100))}`;
    return ["url-error", `a request without a signature is answered ${shown}, not 401`];
  }
  if (status === 404) {
    return ["url-not-found", "it answers 404: a webhook endpoint that hides, or a path that is not there"];
  }
  if (refusals.has(status)) return undefined;
  return ["url-unguarded", `a request without signature and credentials is answered ${status}, not 401`];
}

function problemCode(body: string): string | undefined {
  try {
    const code = memberOf(JSON.parse(body), "code");
    return typeof code === "string" ? code : undefined;
  } catch {
    return undefined;
  }
}

// From fetch: a TypeError whose cause is the connection's error, or the signal's reason.
function reasonOf(error: unknown): string {
  if (memberOf(error, "name") === "TimeoutError") return "it did not answer in time";
  const cause = memberOf(error, "cause") ?? error;
  const code = codeOf(cause);
  return code === "no code" ? oneLine(messageOf(cause)) : `it cannot be reached (${printable(code)})`;
}
