import { randomUUID } from "node:crypto";
import {
  answersOf,
  type CaseResult,
  type DemoCase,
  type DemoService,
  ownWebhook,
  resultOf,
  runCase,
} from "@countersign/example-demo";
import {
  buildPayoutRequest,
  createPayoutInstruction,
  PayoutSendError,
  sendPayout,
} from "@countersign/devtools/sandbox";
import type { WebhookEndpoint } from "countersign/client";
import { z } from "zod";
import type { Cluster } from "./topology.ts";

const payoutPath = "/api/v1/transaction";
const manyPayouts = 20;
const manyEvents = 20;
// Longer than the proxy waits: its 502 comes first.
const timeoutMs = 30_000;

const inspectedPayouts = z.array(z.object({ idempotency_key: z.string() }));
const inspectedEvents = z.array(z.object({ event_id: z.string(), applied: z.number() }));
const inspectedState = z.object({ buyers: z.record(z.string(), z.string()) });

/**
 * Sends payouts and webhooks to the proxy, which hands each request to the other process than the one before, and counts what
 * both processes have of it.
 */
export async function runClusterCases(
  cluster: Cluster,
  service: DemoService,
): Promise<readonly CaseResult[]> {
  const keys: string[] = [];
  const results: CaseResult[] = [];
  for (const one of payoutCases(cluster, keys)) {
    // oxlint-disable-next-line no-await-in-loop -- later cases depend on earlier ones
    results.push(await runCase({ url: cluster.url + payoutPath, key: cluster.setup.key }, one));
  }
  results.push(await payMany(cluster, keys));
  const webhooks = await sendWebhooks(cluster, service);
  return [
    ...results,
    ...webhooks.results,
    await countPayments(cluster, keys),
    await countApplied(cluster, webhooks.eventIds),
    await compareStates(cluster, service, webhooks.buyers),
    resultOf(
      "processes that have answered",
      "2 of 2",
      `${busyCount(cluster)} of ${cluster.platforms.length}`,
    ),
  ];
}

function payoutCases({ platforms }: Cluster, keys: string[]): readonly DemoCase[] {
  const newKey = (): string => {
    const key = `payout-${randomUUID()}.funding-1.business-1`;
    keys.push(key);
    return key;
  };
  const idempotencyKey = newKey();
  return [
    { name: "a good payout", expected: "200", idempotencyKey },
    { name: "the same key, other process", expected: "409", idempotencyKey },
    {
      name: "a replayed nonce, other process",
      expected: "200 401",
      variant: "replay",
      idempotencyKey: newKey(),
    },
    { name: "a tampered body", expected: "401", variant: "tamper-body" },
    { name: "a payout past the proxy", expected: "401", url: `${platforms[0]?.url}${payoutPath}` },
    {
      name: "one key at both, at once",
      expected: "200 409|503",
      variant: "concurrent",
      idempotencyKey: newKey(),
    },
  ];
}

/** Each is sent at once with the others; then each a second time, with a fresh signature. */
async function payMany({ url, setup }: Cluster, keys: string[]): Promise<CaseResult> {
  const ours = Array.from({ length: manyPayouts }, () => `payout-${randomUUID()}.funding-1.business-1`);
  keys.push(...ours);
  const send = async (idempotencyKey: string): Promise<string> => {
    const { keyid, privateKeyPem: privateKey } = setup.key;
    const body = createPayoutInstruction({ idempotencyKey });
    const request = buildPayoutRequest({ url: url + payoutPath, body, privateKey, keyid });
    try {
      return String((await sendPayout(request, { timeoutMs })).status);
    } catch (error) {
      if (!(error instanceof PayoutSendError)) throw error;
      return error.code;
    }
  };
  const first = await Promise.all(ours.map(send));
  const second = await Promise.all(ours.map(send));
  const name = `${manyPayouts} payouts, each sent twice`;
  const expected = `${manyPayouts} x 200, ${manyPayouts} x 409`;
  return resultOf(name, expected, [...countsOf(first), ...countsOf(second)].join(", "));
}

function countsOf(statuses: readonly string[]): readonly string[] {
  return [...new Set(statuses)].map(
    (status) => `${statuses.filter((other) => other === status).length} x ${status}`,
  );
}

interface SentWebhooks {
  readonly results: readonly CaseResult[];
  readonly eventIds: readonly string[];
  readonly buyers: readonly string[];
}

async function sendWebhooks(cluster: Cluster, service: DemoService): Promise<SentWebhooks> {
  const endpoint = endpointOf(cluster);
  const { status, endpointId } = await service.register(endpoint);
  const run = randomUUID();
  const buyers = Array.from({ length: manyEvents }, (_, index) => `buyer-${index}-${run}`);
  const eventIds: string[] = [];
  for (const buyer of buyers) {
    const { event_id: eventId = "" } = service.sandbox.changeBuyerStatus(buyer, "ACTIVE");
    eventIds.push(eventId);
    // A webhook of its own: both processes get some.
    // oxlint-disable-next-line no-await-in-loop -- one after the other
    await service.untilDelivered(endpointId, eventId);
  }
  const deliveries = service.sandbox.deliveries.list({ state: "delivered", limit: 1_000 });
  const delivered = new Set(deliveries.flatMap((delivery) => delivery.eventIds));
  const count = eventIds.filter((eventId) => delivered.has(eventId)).length;
  const own = ownWebhook(endpoint);
  const duplicate = answersOf([await own.send(), await own.send()]);
  return {
    results: [
      resultOf("a webhook endpoint, registered", "201", String(status)),
      resultOf(
        "webhooks of the service, delivered",
        `${manyEvents} of ${manyEvents}`,
        `${count} of ${manyEvents}`,
      ),
      resultOf("a webhook that both processes get", "200 200", duplicate),
    ],
    eventIds: [...eventIds, own.eventId],
    buyers,
  };
}

/** The webhook route behind the proxy. */
function endpointOf({ url, setup }: Cluster): WebhookEndpoint {
  const { path: route, ...credentials } = setup.webhook;
  return { ...credentials, url: url + route };
}

async function countPayments(cluster: Cluster, keys: readonly string[]): Promise<CaseResult> {
  const once = await inAll(cluster, async (url) => {
    const payouts = inspectedPayouts.parse(await inspect(`${url}/inspect/payouts`));
    const paid = payouts.map(({ idempotency_key: key }) => key);
    return keys.filter((key) => paid.filter((other) => other === key).length === 1).length;
  });
  return resultOf(
    "keys that were paid exactly once",
    `${keys.length} of ${keys.length}`,
    `${once} of ${keys.length}`,
  );
}

async function countApplied(cluster: Cluster, eventIds: readonly string[]): Promise<CaseResult> {
  const once = await inAll(cluster, async (url) => {
    const events = inspectedEvents.parse(await inspect(`${url}/inspect/events`));
    const applied = new Map(events.map(({ event_id: eventId, applied: times }) => [eventId, times]));
    return eventIds.filter((eventId) => applied.get(eventId) === 1).length;
  });
  return resultOf(
    "events applied exactly once",
    `${eventIds.length} of ${eventIds.length}`,
    `${once} of ${eventIds.length}`,
  );
}

async function compareStates(
  cluster: Cluster,
  { sandbox }: DemoService,
  ids: readonly string[],
): Promise<CaseResult> {
  const equal = await inAll(cluster, async (url) => {
    const { buyers } = inspectedState.parse(await inspect(`${url}/inspect/state`));
    return ids.filter((id) => buyers[id] === sandbox.buyerStatus(id)).length;
  });
  return resultOf(
    "statuses as at the service",
    `${ids.length} of ${ids.length}`,
    `${equal} of ${ids.length}`,
  );
}

/** The smallest count of all processes: each is asked by itself. */
async function inAll({ platforms }: Cluster, count: (url: string) => Promise<number>): Promise<number> {
  return Math.min(...(await Promise.all(platforms.map(({ url }) => count(url)))));
}

function busyCount({ proxy }: Cluster): number {
  return proxy.answered.filter((count) => count > 0).length;
}

async function inspect(url: string): Promise<unknown> {
  const response = await fetch(url);
  return response.json();
}
