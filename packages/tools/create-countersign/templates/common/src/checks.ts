import type { PayoutOptions } from "@countersign/payout";
import { createWebhookHandler, type WebhookOptions } from "@countersign/webhooks";
import { isKnownBusiness, recordEvent, stores } from "./database.ts";
import { settings } from "./settings.ts";

/** What a payout has to satisfy before your code sees it. */
export const payoutChecks = {
  addresses: { allow: settings.allowIps },
  signature: { keys: { [settings.keyid]: settings.publicKey }, nonces: stores.nonces },
  // An attempt that died is made again: payment and key are committed in one transaction, or neither is.
  idempotency: { store: stores.idempotency, recovery: "rerun" },
  findBusiness: ({ businessId, iban }) => isKnownBusiness(businessId, iban),
} satisfies PayoutOptions<never>;

const handler = createWebhookHandler({ store: stores.idempotency, fallback: recordEvent });

// A type with something to do gets a handler of its own; all others go to the fallback. It finishes as recordEvent does.
// handler.on("payment_request.repayment.repaid", (event, context) => …);

/** What a webhook has to satisfy; its events go to `handler`, each of them once. */
export const webhookChecks = {
  basicAuth: { username: settings.webhookUsername, password: settings.webhookPassword },
  hmac: { secret: settings.webhookSecret },
  handler,
} satisfies WebhookOptions<never>;
