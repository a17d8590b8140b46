import { failureOf } from "@countersign/example-settings";
import type { Logger } from "pino";

/** How a payout ended, to be told to the service. */
export interface PayoutConfirmation {
  readonly idempotencyKey: string;
  readonly businessId: string;
  readonly status: "executed" | "failed";
  readonly reason: string | undefined;
  readonly settledAt: Date;
}

/** Tells the service. Resolves when the service has it; may be called again for the same payout. */
export interface ConfirmationReporter {
  report(confirmation: PayoutConfirmation, signal: AbortSignal): Promise<void>;
}

/** For platforms that have no confirmation URL yet: the outcome is in the log and counts as reported. */
export function logReporter(logger: Logger): ConfirmationReporter {
  return {
    report(confirmation) {
      logger.info({ confirmation }, "payout outcome, not sent: CONFIRMATION_URL is not set");
      return Promise.resolve();
    },
  };
}

/**
 * Sends each confirmation as a POST with a JSON body; every 2xx is success. Method, path and payload of the service's own
 * endpoint are agreed during integration: give its URL and, as `buildBody`, its payload.
 */
export function httpReporter({
  url,
  apiKey,
  buildBody = defaultConfirmationBody,
}: HttpReporterOptions): ConfirmationReporter {
  const headers = {
    "content-type": "application/json",
    ...(apiKey === undefined ? {} : { "x-api-key": apiKey }),
  };
  return {
    async report(confirmation, signal) {
      const body = JSON.stringify(buildBody(confirmation));
      const { status } = await post(url, { headers, body, signal });
      if (status < 200 || status > 299) throw new Error(explainAnswer(status));
    },
  };
}

/** Options of {@link httpReporter}. */
export interface HttpReporterOptions {
  readonly url: URL;
  /** Sent as X-API-KEY. */
  readonly apiKey?: string | undefined;
  /** The JSON body of a confirmation. */
  readonly buildBody?: ((confirmation: PayoutConfirmation) => unknown) | undefined;
}

async function post(url: URL, init: RequestInit): Promise<{ readonly status: number }> {
  let response: Response;
  try {
    // A redirect would carry the outcome of a payment to a place that nobody configured.
    response = await fetch(url, { ...init, method: "POST", redirect: "manual" });
  } catch (error) {
    if (init.signal?.aborted === true) throw error;
    // The URL is not shown: it may hold a token.
    const failure = failureOf(causeOf(error));
    const message = `CONFIRMATION_URL cannot be reached: ${failure}; see its scheme, host and port`;
    throw new Error(message, { cause: error });
  }
  await response.body?.cancel();
  return response;
}

// fetch itself only says that it failed.
function causeOf(error: unknown): unknown {
  return typeof error === "object" && error !== null && "cause" in error ? error.cause : error;
}

function explainAnswer(status: number): string {
  const answered = `CONFIRMATION_URL answered ${status}`;
  if (status >= 300 && status < 400) {
    return `${answered}, a redirect, which is not followed: see its scheme and its path, also a slash at the end`;
  }
  if (status === 401 || status === 403) return `${answered}: see CONFIRMATION_API_KEY`;
  if (status === 404 || status === 405) return `${answered}: see its path`;
  return answered;
}

function defaultConfirmationBody(confirmation: PayoutConfirmation): unknown {
  const { idempotencyKey, businessId, status, reason, settledAt } = confirmation;
  return {
    idempotency_key: idempotencyKey,
    business_id: businessId,
    status,
    ...(reason === undefined ? {} : { reason }),
    settled_at: settledAt.toISOString(),
  };
}
