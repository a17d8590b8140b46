import type { WebhookEventMap } from "@countersign/webhooks";

const samples: Readonly<Record<keyof WebhookEventMap, Readonly<Record<string, unknown>>>> = {
  "buyer.status_changed": { buyer_id: "buyer-1", old_status: "PENDING", new_status: "ACTIVE" },
  "seller.status_changed": { seller_id: "seller-1", old_status: "PENDING", new_status: "ACTIVE" },
  "payment_request.repayment.repaid": { payment_request_id: "request-1" },
  "payment_request.repayment.reminder": {
    payment_request_id: "request-1",
    due_date: "2030-01-31",
    days_from_due_date: -3,
  },
};

/** Data of an event of each type that the interface describes. */
export const sampleEventData: ReadonlyMap<string, Readonly<Record<string, unknown>>> = new Map(
  Object.entries(samples),
);
