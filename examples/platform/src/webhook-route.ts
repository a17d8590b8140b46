import { isGuardError } from "@countersign/core";
import type { WebhookSettings } from "@countersign/example-settings";
import {
  createWebhookHandler,
  webhookEndpoint,
  type CreateWebhookHandlerOptions,
  type WebhookEvent,
  type WebhookHandler,
} from "countersign/webhooks";
import type { Logger } from "pino";
import type { GuardStores } from "./engines/storage.ts";
import type { PartyLedger } from "./ledgers/parties.ts";

/** Everything between the wire and the ledger, for `app.use(settings.path, ...)`: whatever it refuses looks like an unknown route. */
export function webhookRoute(
  { username, password, secrets, allowHttp }: WebhookSettings,
  handler: WebhookHandler<unknown>,
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

/** Applies each event once: its change and that it is done are one transaction, but where Redis has the keys. */
export function createPartyHandler(
  stores: GuardStores,
  parties: PartyLedger,
  logger: Logger,
): WebhookHandler<unknown> {
  const record = (event: WebhookEvent, { tx }: HandlerContext): unknown => {
    logger.info({ eventId: event.event_id, type: event.type }, "an event of an unknown type");
    return parties.record(event, tx);
  };
  const shared = {
    // Said aloud, as the scope of payouts: another handler on this store has to have another one.
    keyPrefix: "webhook-event:",
    onError: ({ event_id: eventId, type, outcome, error }) => {
      const what =
        outcome === "dead-lettered"
          ? "an event is malformed, and was acknowledged: the service sends it no more"
          : "an event failed, the service will send it again";
      logger.warn({ eventId, type, outcome, err: error }, what);
    },
    fallback: record,
  } satisfies Partial<CreateWebhookHandlerOptions>;
  // A short lease: an event that a crash interrupts is handled when it has ended. The handlers take milliseconds.
  const handler: WebhookHandler<HandlerContext> =
    stores.transactions === undefined
      ? createWebhookHandler({ ...shared, store: stores.idempotency, leaseMs: 5_000 })
      : createWebhookHandler({ ...shared, stores });
  return handler
    .on("buyer.status_changed", (event, { tx }) => parties.changeBuyer(event, tx))
    .on("seller.status_changed", (event, { tx }) => parties.changeSeller(event, tx))
    .on("payment_request.repayment.repaid", (event, { tx }) => parties.closePaymentRequest(event, tx))
    .on("payment_request.repayment.reminder", (event, { tx }) => parties.countReminder(event, tx));
}

/** What a handler is given: the transaction where the keys are in the ledgers' database. */
interface HandlerContext {
  readonly webhookId: string;
  readonly tx?: object;
}
