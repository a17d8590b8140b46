import { PayoutSendError, type SendErrorCode } from "../send-error.ts";
import { sendRequest, type ExchangeOptions } from "../send-request.ts";
import { buildWebhookRequest, type WebhookRequestOptions } from "./webhook-request.ts";

/** What became of one request: a status, or the error that kept it away. */
export interface WebhookAnswer {
  readonly status?: number | undefined;
  readonly error?: SendErrorCode | undefined;
  readonly durationMs: number;
}

/** Options of {@link sendWebhook}. */
export interface WebhookOptions
  extends WebhookRequestOptions, Pick<ExchangeOptions, "ca" | "timeoutMs" | "signal" | "dropAnswer"> {}

const bodyLimitBytes = 1024;

/**
 * Signs and sends one webhook: no redirect followed, certificates always verified, of the answer's body 1 KiB read. Default
 * `timeoutMs` 30 000. Resolves with what became of it; throws a TypeError on what cannot be sent.
 */
export async function sendWebhook(options: WebhookOptions): Promise<WebhookAnswer> {
  const { ca, timeoutMs = 30_000, signal, dropAnswer } = options;
  const request = buildWebhookRequest(options);
  const startedAt = performance.now();
  try {
    const { status, durationMs } = await sendRequest(request, {
      ca,
      timeoutMs,
      signal,
      dropAnswer,
      bodyLimitBytes,
    });
    return { status, durationMs };
  } catch (error) {
    if (!(error instanceof PayoutSendError)) throw error;
    return { error: error.code, durationMs: performance.now() - startedAt };
  }
}
