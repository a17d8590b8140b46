import type { FetchFunction } from "./options.ts";
import { ServiceClientError, type ServiceClientErrorCode } from "./service-client-error.ts";

export interface Exchange {
  readonly fetch: FetchFunction;
  readonly url: string;
  /** Default POST. */
  readonly method?: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
  readonly timeoutMs: number;
  readonly signal: AbortSignal;
}

interface CappedBody {
  readonly bytes: Buffer;
  readonly truncated: boolean;
}

export interface Answer extends CappedBody {
  readonly status: number;
  readonly retryAfter: string | null;
}

const bodyLimitBytes = 65_536;

/** Sends once, and follows no redirect. Rejects with the reason of `signal`, or with a ServiceClientError. */
export async function exchange({ timeoutMs, signal, ...request }: Exchange): Promise<Answer> {
  signal.throwIfAborted();
  const late = new AbortController();
  const timer = setTimeout(() => late.abort(timeoutError(timeoutMs)), timeoutMs);
  const box = AbortSignal.any([signal, late.signal]);
  try {
    // The race holds even with a fetch that does not listen to its signal.
    return await Promise.race([send(request, box), rejectionOf(box)]);
  } catch (error) {
    throw box.aborted ? box.reason : error;
  } finally {
    clearTimeout(timer);
    // Ends the connection where the answer was not read to its end.
    late.abort();
  }
}

export function timeoutError(timeoutMs: number): ServiceClientError {
  return new ServiceClientError(
    "timeout",
    `the service gave no complete answer within ${timeoutMs} ms; it may have acted on the request`,
  );
}

type Request = Omit<Exchange, "timeoutMs" | "signal">;

async function send(
  { fetch, url, method = "POST", headers, body }: Request,
  signal: AbortSignal,
): Promise<Answer> {
  try {
    // "manual": fetch would send X-API-KEY along a redirect.
    const response = await fetch(url, { method, headers, body, redirect: "manual", signal });
    const read = await readCapped(response, bodyLimitBytes);
    return { status: response.status, retryAfter: response.headers.get("retry-after"), ...read };
  } catch (error) {
    throw networkError(error);
  }
}

function rejectionOf(signal: AbortSignal): Promise<never> {
  return new Promise((_resolve, reject) => {
    signal.addEventListener("abort", () => reject(signal.reason), { once: true });
  });
}

// The original is not kept as the cause: what another fetch throws may show the request, header fields included.
function networkError(error: unknown): ServiceClientError {
  const systemCode = systemCodeOf(error) ?? "no code";
  const code: ServiceClientErrorCode = certificateCode.test(systemCode) ? "certificate-rejected" : "network";
  return new ServiceClientError(code, `${wording[code]} (${systemCode})`);
}

const certificateCode = /CERT|UNABLE_TO_|SELF_SIGNED|HOSTNAME_MISMATCH/;
const wording = {
  "certificate-rejected": "the certificate of the service is not trusted; nothing was sent",
  network: "the connection to the service failed or was lost; it may have acted on the request",
} as const;

/** The `code` of an error or of its causes: fetch wraps the errors of the socket. */
function systemCodeOf(error: unknown): string | undefined {
  for (let [current, depth] = [error, 0]; depth < 5; depth += 1) {
    if (typeof current !== "object" || current === null) return undefined;
    const code: unknown = "code" in current ? current.code : undefined;
    if (typeof code === "string" && /^[A-Z][A-Z0-9_]{1,63}$/.test(code)) return code;
    current = "cause" in current ? current.cause : undefined;
  }
  return undefined;
}

/** Reads a body up to `limitBytes`, decoded if compressed, then cancels it. Rejects with the error of the stream. */
export async function readCapped({ body }: Pick<Response, "body">, limitBytes: number): Promise<CappedBody> {
  const chunks: Uint8Array[] = [];
  let length = 0;
  for await (const chunk of body ?? []) {
    chunks.push(chunk);
    length += chunk.length;
    if (length > limitBytes) break;
  }
  return { bytes: Buffer.concat(chunks).subarray(0, limitBytes), truncated: length > limitBytes };
}
