import { describe, expect, test } from "@jest/globals";
import {
  parseWebhookEnvelope,
  type PartyStatus,
  type WebhookEvent,
  type WebhookEventMap,
} from "countersign/webhooks";
import type { UnknownWebhookEvent } from "../../../dist/webhooks/envelope/events.js";
import { bodyOf, buyerEvent, envelopeOf, reminderEvent } from "./envelope-body.ts";

// oxlint-disable-next-line typescript/no-unnecessary-type-parameters -- the compiler compares two such types member by member
type Same<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false;

/** Compiles only when both types are one. */
function same<A, B>(_proof: Same<A, B>): void {}

function subjectOf(event: WebhookEvent): string {
  switch (event.type) {
    case "buyer.status_changed":
      same<typeof event, WebhookEventMap["buyer.status_changed"]>(true);
      return event.data.buyer_id;
    case "seller.status_changed":
      same<typeof event, WebhookEventMap["seller.status_changed"]>(true);
      return event.data.seller_id;
    case "payment_request.repayment.repaid":
      same<typeof event, WebhookEventMap["payment_request.repayment.repaid"]>(true);
      return event.data.payment_request_id;
    case "payment_request.repayment.reminder":
      same<typeof event, WebhookEventMap["payment_request.repayment.reminder"]>(true);
      return `${event.data.payment_request_id} ${event.data.days_from_due_date.toFixed(0)}`;
    default:
      same<typeof event, UnknownWebhookEvent>(true);
      // @ts-expect-error -- nothing is known of the data of an unknown type
      same<typeof event.data, { readonly buyer_id: string }>(true);
      return event.type;
  }
}

function ifNarrowed(event: WebhookEvent): string | undefined {
  // @ts-expect-error -- the data is one thing or another until the type is known
  const early: string = event.data.buyer_id;
  if (event.type === "buyer.status_changed") return event.data.buyer_id;
  return early;
}

describe("the type of an event", () => {
  test("narrows in a switch on event.type, down to the unknown types in its default", () => {
    const events = [
      buyerEvent,
      { ...buyerEvent, type: "seller.status_changed", data: { ...buyerEvent.data, seller_id: "s_1" } },
      { ...reminderEvent, type: "payment_request.repayment.repaid" },
      reminderEvent,
      { ...buyerEvent, type: "ping" },
    ];
    const parsed = parseWebhookEnvelope(bodyOf(envelopeOf(...events)));
    expect(parsed.events.map(subjectOf)).toEqual(["b_1", "s_1", "p_1", "p_1 -3", "ping"]);
    expect(parsed.events.map(ifNarrowed)[0]).toBe("b_1");
  });

  test("knows the statuses, and takes others", () => {
    const known: PartyStatus[] = ["PENDING", "ACTIVE", "INACTIVE", "REJECTED", "SUSPENDED"];
    // @ts-expect-error -- no status of the spec
    const misspelt: PartyStatus = "ACTIV";
    const statuses: WebhookEventMap["buyer.status_changed"]["data"]["new_status"][] = [
      ...known,
      misspelt,
      "FROZEN",
    ];
    expect(statuses).toHaveLength(7);
  });

  test("is found by its name in the map, and a known event is no unknown one", () => {
    same<
      WebhookEventMap["payment_request.repayment.repaid"],
      Extract<WebhookEvent, { readonly type: "payment_request.repayment.repaid" }>
    >(true);
    same<keyof WebhookEventMap, Exclude<WebhookEvent, UnknownWebhookEvent>["type"]>(true);
    // @ts-expect-error -- a plain string is not yet known to be an unknown type
    const type: UnknownWebhookEvent["type"] = "ping";
    const text: string = type;
    expect(text).toBe("ping");
  });
});
