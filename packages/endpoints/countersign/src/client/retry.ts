import { setTimeout as sleep } from "node:timers/promises";
import pRetry from "p-retry";
import { timeoutError } from "./exchange.ts";
import { ServiceClientError, type ServiceClientErrorCode } from "./service-client-error.ts";

export interface RetryLimits {
  readonly retries: number;
  readonly retryDelayMs: number;
  readonly totalTimeoutMs: number;
  readonly signal?: AbortSignal | undefined;
}

const backoff = { factor: 2, maxTimeout: 10_000, randomize: true };
const transient: ReadonlySet<ServiceClientErrorCode> = new Set(["unavailable", "timeout", "network"]);

/** Runs `attempt` until it resolves, fails for good, or time or Retry-After leaves no retry. Rejects with the last ServiceClientError. */
export async function withRetries<T>(
  attempt: (signal: AbortSignal) => Promise<T>,
  { retries, retryDelayMs, totalTimeoutMs, signal }: RetryLimits,
): Promise<T> {
  const deadline = performance.now() + totalTimeoutMs;
  const call = new AbortController();
  const timer = setTimeout(() => call.abort(timeoutError(totalTimeoutMs)), totalTimeoutMs);
  const stop = (): void => call.abort(abortedError(signal));
  signal?.addEventListener("abort", stop, { once: true });
  if (signal?.aborted === true) stop();
  let last: Error | undefined;
  try {
    return await pRetry(() => attempt(call.signal), {
      ...backoff,
      minTimeout: retryDelayMs,
      retries,
      signal: call.signal,
      onFailedAttempt: ({ error }) => {
        last = error;
      },
      shouldRetry: ({ error }) => mayRetry(error, deadline, call.signal),
    });
  } catch (error) {
    if (signal?.aborted === true) throw call.signal.reason;
    // Out of time while waiting: the last answer says more than the time limit.
    throw call.signal.aborted ? (last ?? call.signal.reason) : error;
  } finally {
    clearTimeout(timer);
    signal?.removeEventListener("abort", stop);
  }
}

async function mayRetry(error: Error, deadline: number, signal: AbortSignal): Promise<boolean> {
  if (!(error instanceof ServiceClientError) || !transient.has(error.code)) return false;
  const waitMs = (error.retryAfterSeconds ?? 0) * 1000;
  if (waitMs >= deadline - performance.now()) return false;
  if (waitMs > 0) await sleep(waitMs, undefined, { signal });
  return true;
}

function abortedError(signal: AbortSignal | undefined): ServiceClientError {
  const message = "the call was aborted; the service may have acted on the request";
  return new ServiceClientError("aborted", message, { cause: signal?.reason });
}

// The three forms that a recipient accepts (RFC 9110 section 5.6.7); V8 reads the last one in local time without a zone.
const imfFixdate = /^[A-Z][a-z]{2}, \d{2} [A-Z][a-z]{2} \d{4} \d{2}:\d{2}:\d{2} GMT$/;
const rfc850Date = /^[A-Z][a-z]{5,8}, \d{2}-[A-Z][a-z]{2}-\d{2} \d{2}:\d{2}:\d{2} GMT$/;
const asctimeDate = /^[A-Z][a-z]{2} [A-Z][a-z]{2} [ \d]\d \d{2}:\d{2}:\d{2} \d{4}$/;

/** Reads Retry-After into seconds from `nowMs`, 0 for the past. Malformed: undefined. */
export function parseRetryAfter(value: string | null, nowMs: number): number | undefined {
  if (value === null) return undefined;
  if (/^\d{1,9}$/.test(value)) return Number(value);
  const epochMs = parseHttpDate(value);
  return epochMs === undefined ? undefined : Math.max(0, Math.ceil((epochMs - nowMs) / 1000));
}

function parseHttpDate(value: string): number | undefined {
  const zoned = asctimeDate.test(value) ? `${value} GMT` : value;
  if (zoned === value && !imfFixdate.test(value) && !rfc850Date.test(value)) return undefined;
  const epochMs = Date.parse(zoned);
  return Number.isNaN(epochMs) ? undefined : epochMs;
}
