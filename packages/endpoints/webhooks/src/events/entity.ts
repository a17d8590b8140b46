import type { WebhookEvent } from "../envelope/events.ts";

/** The buyer, seller or payment request that an event of the spec is about; undefined for other types. */
export function entityOf(event: WebhookEvent): string | undefined {
  switch (event.type) {
    case "buyer.status_changed":
      return `buyer:${event.data.buyer_id}`;
    case "seller.status_changed":
      return `seller:${event.data.seller_id}`;
    case "payment_request.repayment.repaid":
    case "payment_request.repayment.reminder":
      return `payment_request:${event.data.payment_request_id}`;
    default:
      return undefined;
  }
}
