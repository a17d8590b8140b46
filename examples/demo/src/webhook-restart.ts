import { z } from "zod";
import type { CaseResult, Report } from "./cases.ts";
import { resultOf, type WebhookExchange } from "./webhook-cases.ts";

const inspectedEvents = z.array(z.object({ event_id: z.string(), applied: z.number() }));
const inspectedState = z.object({
  buyers: z.record(z.string(), z.string()),
  sellers: z.record(z.string(), z.string()),
  payment_requests: z.record(z.string(), z.object({ status: z.string() })),
});

/** Something happens while the platform is down. Resolves with the event when the service has failed to deliver it. */
export async function missEvent({ service, endpointId, parties }: WebhookExchange): Promise<string> {
  const { event_id: eventId = "" } = service.sandbox.changeSellerStatus(parties.seller, "SUSPENDED");
  await service.untilAttempted(endpointId, eventId, 1);
  return eventId;
}

/** The cases that follow a restart; `url` is the platform's. */
export async function runAfterRestart(
  exchange: WebhookExchange,
  missedEventId: string,
  url: string,
  report: Report,
): Promise<void> {
  const { service, endpointId } = exchange;
  const delivery = await service.untilDelivered(endpointId, missedEventId);
  const answers = delivery?.attempts.map(({ status, error }) => (error === undefined ? status : "none"));
  // How many attempts find nobody depends on how long the restart takes.
  const got = [...new Set(answers)].join(" ");
  report(resultOf("an event during the restart", "none 200", got));
  report(await countApplied(exchange, url));
  report(await compareStates(exchange, url));
}

async function countApplied(exchange: WebhookExchange, url: string): Promise<CaseResult> {
  const { service, endpointId, ownEventIds } = exchange;
  const deliveries = service.sandbox.deliveries.list({ state: "delivered", limit: 1000 });
  const ours = deliveries.filter((delivery) => delivery.endpointId === endpointId);
  const eventIds = [...ownEventIds, ...ours.flatMap((delivery) => delivery.eventIds)];
  const inspected = inspectedEvents.parse(await inspect(`${url}/inspect/events`));
  const once = new Set(inspected.filter(({ applied }) => applied === 1).map(({ event_id }) => event_id));
  const count = eventIds.filter((eventId) => once.has(eventId)).length;
  return resultOf(
    "events applied exactly once",
    `${eventIds.length} of ${eventIds.length}`,
    `${count} of ${eventIds.length}`,
  );
}

async function compareStates({ service, parties }: WebhookExchange, url: string): Promise<CaseResult> {
  const { sandbox } = service;
  const {
    buyers,
    sellers,
    payment_requests: requests,
  } = inspectedState.parse(await inspect(`${url}/inspect/state`));
  const { buyer, seller, otherSeller, paymentRequest, otherRequest } = parties;
  const pairs = [
    [buyers[buyer], sandbox.buyerStatus(buyer)],
    ...[seller, otherSeller].map((id) => [sellers[id], sandbox.sellerStatus(id)]),
    ...[paymentRequest, otherRequest].map((id) => [requests[id]?.status, sandbox.paymentRequest(id).status]),
  ];
  const equal = pairs.filter(([here, there]) => here === there).length;
  return resultOf(
    "statuses as at the service",
    `${pairs.length} of ${pairs.length}`,
    `${equal} of ${pairs.length}`,
  );
}

async function inspect(url: string): Promise<unknown> {
  const response = await fetch(url);
  return response.json();
}
