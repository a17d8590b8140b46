import { isGuardError } from "@countersign/core";
import type { WebhookSettings } from "@countersign/example-settings";
import {
  createWebhookHandler,
  webhookEndpoint,
  type CreateWebhookHandlerOptions,
  type WebhookEvent,
  type WebhookHandler,
} from "@countersign/webhooks";
import type { Logger } from "pino";
import type { GuardStores } from "./engines/storage.ts";
import type { PartyLedger } from "./ledgers/parties.ts";

/** What the webhook route works with. */
export interface WebhookRouteParts {
  readonly stores: GuardStores;
  readonly parties: PartyLedger;
  readonly logger: Logger;
}

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
export function createPartyHandler({ stores, parties, logger }: WebhookRouteParts): WebhookHandler<unknown> {
  const shared: Pick<CreateWebhookHandlerOptions, "keyPrefix" | "onError"> = {
    // Said aloud, as the scope of payouts: another handler on this store has to have another one.
    keyPrefix: "webhook-event:",
    onError: ({ event_id: eventId, type, outcome, error }) => {
      logger.warn({ eventId, type, outcome, err: error }, "an event failed, the service will send it again");
    },
  };
  const record = (event: WebhookEvent, tx?: object): unknown => {
    logger.info({ eventId: event.event_id, type: event.type }, "an event of an unknown type");
    return parties.record(event, tx);
  };
  if (stores.transactions !== undefined) {
    const fallback = (event: WebhookEvent, { tx }: { readonly tx: object }) => record(event, tx);
    return applying(createWebhookHandler({ ...shared, stores, fallback }), parties, ({ tx }) => tx);
  }
  // Short: an event that a crash interrupts is handled when its lease has ended. The handlers take milliseconds.
  const lease = {
    store: stores.idempotency,
    leaseMs: 5_000,
    fallback: (event: WebhookEvent) => record(event),
  };
  return applying(createWebhookHandler({ ...shared, ...lease }), parties, () => undefined);
}

function applying<Context>(
  handler: WebhookHandler<Context>,
  parties: PartyLedger,
  txOf: (context: Context) => object | undefined,
): WebhookHandler<Context> {
  return handler
    .on("buyer.status_changed", (event, context) => parties.changeBuyer(event, txOf(context)))
    .on("seller.status_changed", (event, context) => parties.changeSeller(event, txOf(context)))
    .on("payment_request.repayment.repaid", (event, context) =>
      parties.closePaymentRequest(event, txOf(context)),
    )
    .on("payment_request.repayment.reminder", (event, context) =>
      parties.countReminder(event, txOf(context)),
    );
}
