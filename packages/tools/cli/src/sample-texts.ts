import type { WebhookEventMap } from "countersign/webhooks";

// Importing the sandbox's own would load it for every command line.
const samples: Readonly<Record<keyof WebhookEventMap, string>> = {
  "buyer.status_changed": '{"buyer_id":"buyer-1","old_status":"PENDING","new_status":"ACTIVE"}',
  "seller.status_changed": '{"seller_id":"seller-1","old_status":"PENDING","new_status":"ACTIVE"}',
  "payment_request.repayment.repaid": '{"payment_request_id":"request-1"}',
  "payment_request.repayment.reminder":
    '{"payment_request_id":"request-1","due_date":"2030-01-31",\n     "days_from_due_date":-3}',
};

/** Lines for --help: the types of events and the data that is sent of each by default. */
export const sampleTexts: string = [
  "Events of the interface, each with the data that is sent by default. Of any",
  "other type that is {}.",
  ...Object.entries(samples).flatMap(([type, data]) => [`  ${type}`, `    ${data}`]),
  "",
].join("\n");
