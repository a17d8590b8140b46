import { isGuardError } from "@countersign/core";
import type { WebhookSettings } from "@countersign/example-settings";
import type { IdempotencyStore } from "@countersign/idempotency";
import {
  createWebhookHandler,
  webhookEndpoint,
  type EventContext,
  type WebhookHandler,
} from "@countersign/webhooks";
import type { Logger } from "pino";
import type { Completion } from "./ledgers/database.ts";
import type { PartyLedger } from "./ledgers/parties.ts";

/** What the webhook route works with. */
export interface WebhookRouteParts {
  readonly store: IdempotencyStore;
  readonly parties: PartyLedger;
  readonly logger: Logger;
}

/** Everything between the wire and the ledger, for `app.use(settings.path, ...)`: whatever it refuses looks like an unknown route. */
export function webhookRoute(
  { username, password, secrets, allowHttp }: WebhookSettings,
  handler: WebhookHandler,
  logger: Logger,
): ReturnType<typeof webhookEndpoint> {
  return webhookEndpoint({
    basicAuth: { username, password },
    hmac: { secrets },
    https: { dangerouslyAllowHttp: allowHttp },
    handler,
    onReject: (error) => {
      // The refusals of guards are logged already: see main.ts.
      if (!isGuardError(error)) logger.error({ err: error }, "a webhook failed");
    },
  });
}

/** Applies each event once. One of a type that nobody knows yet is acknowledged and recorded. */
export function createPartyHandler({ store, parties, logger }: WebhookRouteParts): WebhookHandler {
  /** The end of the event, to be written by the transaction of its effect where the store can. */
  const completionOf = (context: EventContext): Completion | undefined =>
    store.completeIn === undefined ? undefined : (transaction) => context.completeIn(transaction);
  const handler = createWebhookHandler({
    // Said aloud, as the scope of payouts: another handler on this store has to have another one.
    keyPrefix: "webhook-event:",
    store,
    // Short: an event that a crash interrupts is handled when its lease has ended. The handlers below take milliseconds.
    leaseMs: 5_000,
    fallback: async (event, context) => {
      await parties.record(event, completionOf(context));
      logger.info({ eventId: event.event_id, type: event.type }, "an event of an unknown type");
    },
    onError: ({ event_id: eventId, type, outcome, error }) => {
      logger.warn({ eventId, type, outcome, err: error }, "an event failed, the service will send it again");
    },
  });
  return handler
    .on("buyer.status_changed", (event, context) => parties.changeBuyer(event, completionOf(context)))
    .on("seller.status_changed", (event, context) => parties.changeSeller(event, completionOf(context)))
    .on("payment_request.repayment.repaid", (event, context) =>
      parties.closePaymentRequest(event, completionOf(context)),
    )
    .on("payment_request.repayment.reminder", (event, context) =>
      parties.countReminder(event, completionOf(context)),
    );
}
