import { PayoutSendError, sendRequest } from "@countersign/sandbox";
import type { OutgoingRequest } from "@countersign/sandbox/protocol";
import { joinServiceUrl } from "@countersign/service-client";
import { exitCodes, UsageError, type CommandIo, type ExitCode } from "../command-io.ts";
import { answerLimitBytes } from "../input.ts";
import { assertHttpAllowed } from "../plain-http.ts";
import { printableLine } from "../printable.ts";
import { messageOf } from "../thrown.ts";
import { sendOptionsOf, type TransportFlags } from "./payout-input.ts";

/** The sandbox answered, and not with what was asked for. */
export class SandboxAnswerError extends Error {
  override readonly name: string = "SandboxAnswerError";
}

/** The flags that lead to a sandbox that runs. */
export interface SandboxApiFlags extends Omit<TransportFlags, "header" | "expect"> {
  readonly apiKey: string;
}

/** Paths of a sandbox that runs. What is no JSON is a SandboxAnswerError, like an answer that was not expected. */
export interface SandboxApi {
  get(path: string): Promise<unknown>;
  post(path: string, body: object): Promise<unknown>;
}

/** Makes the requests that the flags describe. Throws a UsageError, which does not show the API key. */
export function sandboxApi(flags: SandboxApiFlags): SandboxApi {
  const { url, apiKey, allowHttp } = flags;
  if (!/^[\x21-\x7e]+$/.test(apiKey)) {
    throw new UsageError("--api-key: expected printable ASCII without spaces");
  }
  assertHttpAllowed("--url", url, allowHttp);
  pathUnder(url, "/");
  const options = { ...sendOptionsOf(flags), bodyLimitBytes: answerLimitBytes };
  const send = async (method: "GET" | "POST", path: string, body?: object): Promise<unknown> => {
    const target = pathUnder(url, path);
    const request: OutgoingRequest = {
      method,
      url: target,
      target: target.slice(target.indexOf("/", "https://".length)),
      headers: {
        Accept: "application/json",
        "X-API-KEY": apiKey,
        ...(body === undefined ? {} : { "Content-Type": "application/json" }),
      },
      bodyBytes: Buffer.from(body === undefined ? "" : JSON.stringify(body), "utf8"),
    };
    const answer = await sendRequest(request, options);
    return documentOf(answer);
  };
  return { get: (path) => send("GET", path), post: (path, body) => send("POST", path, body) };
}

/** Runs what asks a sandbox; what it answered wrongly, or not, is one line. */
export async function failingInOneLine(io: CommandIo, ask: () => Promise<ExitCode>): Promise<ExitCode> {
  try {
    return await ask();
  } catch (error) {
    if (!(error instanceof PayoutSendError) && !(error instanceof SandboxAnswerError)) throw error;
    io.writeError(`error: ${printableLine(error.message)}\n`);
    return error instanceof PayoutSendError ? exitCodes.unreachable : exitCodes.otherwise;
  }
}

// http to another host is a matter of the flag above; what is left here is the form of the URL.
function pathUnder(url: string, path: string): string {
  const isHttp = /^http:/i.test(url);
  try {
    const joined = joinServiceUrl(isHttp ? `https${url.slice("http".length)}` : url, path, {
      subject: "--url",
      allowLoopbackHttp: true,
    });
    return isHttp ? `http${joined.slice("https".length)}` : joined;
  } catch (error) {
    throw new UsageError(messageOf(error), { cause: error });
  }
}

interface Answer {
  readonly status: number;
  readonly body: string;
  readonly bodyTruncated: boolean;
}

function documentOf({ status, body, bodyTruncated }: Answer): unknown {
  if (status === 401) throw new SandboxAnswerError("the sandbox refuses the API key (status 401)");
  if (bodyTruncated)
    throw new SandboxAnswerError("what answers there is no sandbox: its answer does not end; check --url");
  const document = parse(body);
  if (status >= 200 && status <= 299 && document !== undefined) return document;
  const detail = problemDetail(document);
  if (detail !== undefined) throw new SandboxAnswerError(`the sandbox answers: ${detail} (status ${status})`);
  throw new SandboxAnswerError(`what answers there is no sandbox (status ${status}); check --url`);
}

function parse(body: string): unknown {
  try {
    return JSON.parse(body);
  } catch {
    return undefined;
  }
}

// Problem details of a sandbox, with a code of its own; another server's may say anything.
function problemDetail(document: unknown): string | undefined {
  if (typeof document !== "object" || document === null || !("code" in document)) return undefined;
  return "detail" in document && typeof document.detail === "string"
    ? document.detail.slice(0, 200)
    : undefined;
}
