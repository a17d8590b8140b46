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

/** The JSON body of a confirmation. */
type ConfirmationBodyBuilder = (confirmation: PayoutConfirmation) => unknown;

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
  buildBody = defaultConfirmationBody,
}: HttpReporterOptions): ConfirmationReporter {
  return {
    async report(confirmation, signal) {
      const response = await fetch(url, {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: JSON.stringify(buildBody(confirmation)),
        // A redirect would carry the outcome of a payment to a place that nobody configured.
        redirect: "error",
        signal,
      });
      await response.body?.cancel();
      if (!response.ok) throw new Error(`the confirmation was answered with ${response.status}`);
    },
  };
}

/** Options of {@link httpReporter}. */
export interface HttpReporterOptions {
  readonly url: URL;
  readonly buildBody?: ConfirmationBodyBuilder | undefined;
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
