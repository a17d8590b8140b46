import { masking } from "../../loopback/index.ts";
import { PayoutSendError, type SendErrorCode } from "../send-error.ts";
import { sendRequest, type ExchangeOptions } from "../send-request.ts";
import { buildWebhookRequest, type WebhookRequestOptions } from "./webhook-request.ts";

/** A status, or the error that prevented one. */
export interface WebhookAnswer {
  readonly status?: number | undefined;
  readonly error?: SendErrorCode | undefined;
  readonly durationMs: number;
}

export interface WebhookOptions
  extends WebhookRequestOptions, Pick<ExchangeOptions, "ca" | "timeoutMs" | "signal" | "dropAnswer"> {}

export const shownAnswerLength = 1024;

const bodyLimitBytes = shownAnswerLength + masking.marginBytes;

/** Without credentials. */
export interface WebhookExchange {
  /** The value of Authorization is left out. */
  readonly requestHeaders: readonly (readonly [name: string, value: string])[];
  readonly answerHeaders?: readonly (readonly [name: string, value: string])[] | undefined;
  /** The first 5 KiB; a page shows fewer. */
  readonly answerBody?: string | undefined;
}

/** Signs and sends one webhook; keeps 5 KiB of the answer. `timeoutMs` is 30 000 by default. Throws a TypeError on bad input. */
export async function sendWebhook(options: WebhookOptions): Promise<WebhookAnswer> {
  return (await exchangeWebhook(options)).answer;
}

/** {@link sendWebhook}, and what went over the wire. */
export async function exchangeWebhook(
  options: WebhookOptions,
): Promise<{ readonly answer: WebhookAnswer; readonly exchange: WebhookExchange }> {
  const { ca, timeoutMs = 30_000, signal, dropAnswer } = options;
  const request = buildWebhookRequest(options);
  const requestHeaders = shownHeaders(request.headers);
  const startedAt = performance.now();
  try {
    const { status, durationMs, headers, body } = await sendRequest(request, {
      ca,
      timeoutMs,
      signal,
      dropAnswer,
      bodyLimitBytes,
    });
    const answerHeaders = Object.entries(headers).map(([name, value]) => [name, String(value)] as const);
    return { answer: { status, durationMs }, exchange: { requestHeaders, answerHeaders, answerBody: body } };
  } catch (error) {
    if (!(error instanceof PayoutSendError)) throw error;
    return {
      answer: { error: error.code, durationMs: performance.now() - startedAt },
      exchange: { requestHeaders },
    };
  }
}

/** Leaves the password out. */
export function shownHeaders(headers: Readonly<Record<string, string>>): WebhookExchange["requestHeaders"] {
  return Object.entries(headers).map(([name, value]) => [
    name,
    name.toLowerCase() === "authorization" ? `Basic ${masking.text}` : value,
  ]);
}
