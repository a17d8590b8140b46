import { createWebhookHandler, type WebhookOptions } from "countersign/webhooks";
import { isKnownBusiness, recordEvent, recordPayout, stores } from "./database.ts";
import { settings } from "./settings.ts";

/** What a payout has to satisfy before recordPayout pays it, in one transaction with its key. */
export const payoutChecks = {
  addresses: { allow: settings.allowIps },
  signature: { keys: { [settings.keyid]: settings.publicKey } },
  findBusiness: isKnownBusiness,
  stores,
  pay: recordPayout,
};

const handler = createWebhookHandler({ stores, fallback: recordEvent });

// A type with something to do gets a handler of its own, which writes with `tx`; all others go to the fallback.
// handler.on("payment_request.repayment.repaid", (event, { tx }) => …);

/** What a webhook has to satisfy; its events go to `handler`, each of them once. */
export const webhookChecks = {
  basicAuth: { username: settings.webhookUsername, password: settings.webhookPassword },
  hmac: { secret: settings.webhookSecret },
  handler,
} satisfies WebhookOptions<never>;
