import { randomUUID } from "node:crypto";
import { createEnvelope, sendWebhook } from "@countersign/devtools/sandbox";
import type { WebhookEndpoint } from "countersign/client";
import type { PartyStatus } from "countersign/webhooks";
import type { CaseResult, Report } from "./cases.ts";
import { refuseSeller } from "./fault.ts";
import type { DemoService } from "./service.ts";

type WebhookAnswer = Awaited<ReturnType<typeof sendWebhook>>;

/** What the webhooks of the demo are sent to. */
export interface WebhookTarget {
  /** The webhook route and the credentials that it takes. */
  readonly endpoint: WebhookEndpoint;
  /** The webhook route of a second listener, which takes no plain http. */
  readonly httpsOnlyUrl: string;
  /** The platform's database, to be disturbed. */
  readonly databaseFile: string;
}

/** The demo's webhooks, as far as they have come. */
export interface WebhookExchange {
  readonly service: DemoService;
  readonly target: WebhookTarget;
  readonly endpointId: string;
  readonly parties: DemoParties;
  /** Events that were sent past the service. */
  readonly ownEventIds: string[];
}

/** New ones at each start: the platform remembers those of earlier ones. */
interface DemoParties {
  readonly buyer: string;
  readonly seller: string;
  readonly otherSeller: string;
  readonly paymentRequest: string;
  readonly otherRequest: string;
}

interface WebhookCase {
  readonly name: string;
  readonly expected: string;
  /** What was answered, retries included. */
  readonly run: () => Promise<string>;
}

/** Registers the endpoint at the service and runs every case but the restart, one after the other. */
export async function runWebhookCases(
  service: DemoService,
  target: WebhookTarget,
  report: Report,
): Promise<WebhookExchange> {
  const { status, endpointId } = await service.register(target.endpoint);
  const exchange: WebhookExchange = { service, target, endpointId, parties: newParties(), ownEventIds: [] };
  report(resultOf("a webhook endpoint, registered", "201", String(status)));
  for (const { name, expected, run } of [...goodCases(exchange), ...refusedCases(exchange)]) {
    // oxlint-disable-next-line no-await-in-loop -- later cases depend on earlier ones
    report(resultOf(name, expected, await run()));
  }
  return exchange;
}

export function resultOf(name: string, expected: string, got: string): CaseResult {
  return { name, expected, got, ok: got === expected };
}

function newParties(): DemoParties {
  const run = randomUUID();
  return {
    buyer: `buyer-${run}`,
    seller: `seller-${run}`,
    otherSeller: `seller-2-${run}`,
    paymentRequest: `request-${run}`,
    otherRequest: `request-2-${run}`,
  };
}

function goodCases(exchange: WebhookExchange): readonly WebhookCase[] {
  const { service, endpointId, parties } = exchange;
  const { sandbox } = service;
  const delivered = async ({ event_id: eventId = "" }: { readonly event_id?: string | undefined }) =>
    answersOf((await service.untilDelivered(endpointId, eventId))?.attempts);
  return [
    {
      name: "buyer.status_changed",
      expected: "200",
      run: () => delivered(sandbox.changeBuyerStatus(parties.buyer, "ACTIVE")),
    },
    {
      name: "seller.status_changed",
      expected: "200",
      run: () => delivered(sandbox.changeSellerStatus(parties.seller, "REJECTED")),
    },
    {
      name: "payment_request.repayment.reminder",
      expected: "200",
      run: () => {
        sandbox.createPaymentRequest({ payment_request_id: parties.paymentRequest, due_date: "2030-01-31" });
        return delivered(sandbox.remind(parties.paymentRequest));
      },
    },
    {
      name: "payment_request.repayment.repaid",
      expected: "200",
      run: () => delivered(sandbox.repay(parties.paymentRequest)),
    },
    {
      name: "an event of an unknown type",
      expected: "200",
      run: () => {
        const event_id = randomUUID();
        sandbox.deliveries.notify([{ event_id, type: "buyer.limit_changed", data: { limit: "10.10" } }]);
        return delivered({ event_id });
      },
    },
    {
      name: "one of three events fails once",
      expected: "3 events: 404 200",
      run: () => runFailure(exchange),
    },
    { name: "a duplicate delivery", expected: "200 200", run: () => runDuplicate(exchange) },
  ];
}

/** Three events in one webhook; the platform's database refuses the one in the middle until the first answer is there. */
async function runFailure({ service, target, endpointId, parties }: WebhookExchange): Promise<string> {
  const { sandbox } = service;
  const repair = refuseSeller(target.databaseFile, parties.otherSeller);
  let eventId: string;
  try {
    sandbox.createPaymentRequest({ payment_request_id: parties.otherRequest, due_date: "2030-01-31" });
    sandbox.changeBuyerStatus(parties.buyer, "INACTIVE");
    ({ event_id: eventId = "" } = sandbox.changeSellerStatus(parties.otherSeller, "ACTIVE"));
    sandbox.remind(parties.otherRequest);
    await service.untilAttempted(endpointId, eventId, 1);
  } finally {
    repair();
  }
  const delivery = await service.untilDelivered(endpointId, eventId);
  return `${delivery?.eventIds.length} events: ${answersOf(delivery?.attempts)}`;
}

/** The same bytes once more, as after an answer that was lost. */
async function runDuplicate({ target, ownEventIds }: WebhookExchange): Promise<string> {
  const { eventId, send } = ownWebhook(target.endpoint);
  ownEventIds.push(eventId);
  return answersOf([await send(), await send()]);
}

/** A webhook with one event that is sent past the service, each time with the same bytes. */
export function ownWebhook({
  url,
  authUsername: username,
  authPassword: password,
  signatureSecret: secret,
}: WebhookEndpoint): { readonly eventId: string; readonly send: () => Promise<WebhookAnswer> } {
  const event_id = randomUUID();
  const data = { buyer_id: `buyer-of-${event_id}`, old_status: "PENDING", new_status: "ACTIVE" };
  const now = BigInt(Date.now()) * 1_000_000n;
  const body = createEnvelope({ events: [{ event_id, type: "buyer.status_changed", data }], now });
  const webhook = { url, username, password, secret, body, allowHttp: true };
  return { eventId: event_id, send: () => sendWebhook(webhook) };
}

function refusedCases({ service, target, parties }: WebhookExchange): readonly WebhookCase[] {
  const refused = async (changes: Partial<WebhookEndpoint>, status: PartyStatus): Promise<string> => {
    const { endpointId } = await service.register({ ...target.endpoint, ...changes });
    const { event_id: eventId = "" } = service.sandbox.changeBuyerStatus(parties.buyer, status);
    const delivery = await service.untilAttempted(endpointId, eventId, 3);
    return answersOf(delivery?.attempts.slice(0, 3));
  };
  const expected = "404 404 404";
  return [
    {
      name: "a wrong signature",
      expected,
      run: () => refused({ signatureSecret: "another secret" }, "SUSPENDED"),
    },
    {
      name: "a wrong password",
      expected,
      run: () => refused({ authPassword: "another password" }, "REJECTED"),
    },
    { name: "plain http", expected, run: () => refused({ url: target.httpsOnlyUrl }, "PENDING") },
    {
      name: "a probe with OPTIONS",
      expected: "404 as elsewhere",
      run: () => probe(target.endpoint.url),
    },
  ];
}

async function probe(url: string): Promise<string> {
  // As long as the real one, so that Content-Length is the same.
  const unknown = new URL("0".repeat(new URL(url).pathname.length - 1), url).href;
  const [got, elsewhere] = await Promise.all([url, unknown].map(appearance));
  return `${got?.status} ${got?.rest === elsewhere?.rest ? "as elsewhere" : "of its own"}`;
}

/** Status, header fields and body, without what tells any two answers apart. */
async function appearance(url: string): Promise<{ readonly status: number; readonly rest: string }> {
  const response = await fetch(url, { method: "OPTIONS" });
  const fields = [...response.headers].filter(([name]) => name !== "date");
  const body = (await response.text()).replaceAll(new URL(url).pathname, "/");
  return { status: response.status, rest: JSON.stringify([response.status, fields, body]) };
}

/** The statuses of answers, or why there was none, one after the other. */
export function answersOf(attempts: readonly WebhookAnswer[] = []): string {
  return attempts.map(({ status, error }) => status ?? error).join(" ");
}
