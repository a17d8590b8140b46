import type { Awaitable } from "@countersign/idempotency";
import { parseWebhookEnvelope, type WebhookEnvelope } from "@countersign/webhooks";
import { expect, test } from "@jest/globals";
import * as fc from "fast-check";
import { pino } from "pino";
import type { InspectedState, PartyLedger } from "../src/ledgers/parties.ts";
import { createPartyHandler } from "../src/webhook-route.ts";
import { testEngines } from "./test-storage.ts";

interface WireEvent {
  readonly event_id: string;
  readonly timestamp: string;
  readonly type: string;
  readonly data: Readonly<Record<string, unknown>>;
}

/** Events in the order in which they happened, and the state that the service has after the last one. */
interface PartyStream {
  readonly events: readonly WireEvent[];
  readonly state: InspectedState;
}

const steps = fc.array(
  fc.record({
    kind: fc.constantFrom("buyer", "seller", "remind", "repay", "unknown"),
    id: fc.constantFrom("1", "2", "__proto__"),
    status: fc.constantFrom("PENDING", "ACTIVE", "INACTIVE", "REJECTED", "SUSPENDED", "NEW"),
    // Neighbours are a nanosecond apart as well as days.
    laterBy: fc.oneof(fc.constant(1n), fc.bigInt(1n, 2_000_000n), fc.bigInt(1n, 10n ** 14n)),
    fewestDigits: fc.boolean(),
  }),
  { minLength: 1, maxLength: 30 },
);

type Step = typeof steps extends fc.Arbitrary<readonly (infer One)[]> ? One : never;

/** Streams of a service that obeys its own state rules. */
const partyStreams: fc.Arbitrary<PartyStream> = steps.map((all) => {
  const buyers = new Map<string, string>();
  const sellers = new Map<string, string>();
  const requests = new Map<string, { readonly status: string; readonly reminders: number }>();
  let now = 1_704_164_645_000_000_000n;

  function dataOf({ kind, id, status }: Step): Pick<WireEvent, "type" | "data"> | undefined {
    if (kind === "buyer" || kind === "seller") {
      const parties = kind === "buyer" ? buyers : sellers;
      const old_status = parties.get(id) ?? "PENDING";
      parties.set(id, status);
      return {
        type: `${kind}.status_changed`,
        data: { [`${kind}_id`]: id, old_status, new_status: status },
      };
    }
    if (kind === "unknown") return { type: "buyer.limit_changed", data: { buyer_id: id } };
    const request = requests.get(id) ?? { status: "PENDING_REPAYMENT", reminders: 0 };
    if (request.status === "CLOSED") return undefined;
    if (kind === "repay") {
      requests.set(id, { ...request, status: "CLOSED" });
      return { type: "payment_request.repayment.repaid", data: { payment_request_id: id } };
    }
    requests.set(id, { ...request, reminders: request.reminders + 1 });
    return {
      type: "payment_request.repayment.reminder",
      data: { payment_request_id: id, due_date: "2024-01-31", days_from_due_date: "-3" },
    };
  }

  const events = all.flatMap((step, index) => {
    now += step.laterBy;
    const event = dataOf(step);
    return event === undefined
      ? []
      : [{ event_id: `ev-${index}`, timestamp: timestampOf(now, step.fewestDigits), ...event }];
  });
  const state = {
    buyers: Object.fromEntries(buyers),
    sellers: Object.fromEntries(sellers),
    payment_requests: Object.fromEntries(requests),
  };
  return { events, state };
});

function timestampOf(epochNanoseconds: bigint, fewestDigits: boolean): string {
  const seconds = new Date(Number(epochNanoseconds / 1_000_000_000n) * 1000).toISOString().slice(0, 19);
  const nine = String(epochNanoseconds % 1_000_000_000n).padStart(9, "0");
  const fraction = fewestDigits ? nine.replace(/0+$/, "") : nine;
  return fraction === "" ? `${seconds}Z` : `${seconds}.${fraction}Z`;
}

/** The stream as it may arrive: every event at least once, some again, in any order, in webhooks of any size. */
const arrivals = partyStreams.chain(({ events, state }) =>
  fc
    .record({
      again: events.length === 0 ? fc.constant([]) : fc.array(fc.constantFrom(...events), { maxLength: 15 }),
      weights: fc.array(fc.nat(), { minLength: events.length + 15, maxLength: events.length + 15 }),
      sizes: fc.array(fc.integer({ min: 1, max: 8 }), { minLength: 1, maxLength: 20 }),
    })
    .map(({ again, weights, sizes }) => ({
      events,
      state,
      webhooks: grouped(shuffled([...events, ...again], weights), sizes).map(envelopeOf),
    })),
);

function shuffled(events: readonly WireEvent[], weights: readonly number[]): readonly WireEvent[] {
  const weighed = events.map((event, index) => ({ event, weight: weights[index] ?? 0 }));
  weighed.sort((one, other) => one.weight - other.weight);
  return weighed.map(({ event }) => event);
}

function grouped(events: readonly WireEvent[], sizes: readonly number[]): readonly (readonly WireEvent[])[] {
  const groups: WireEvent[][] = [];
  for (let from = 0; from < events.length; from += groups.at(-1)?.length ?? 1) {
    groups.push(events.slice(from, from + (sizes[groups.length % sizes.length] ?? 1)));
  }
  return groups;
}

function envelopeOf(events: readonly WireEvent[], index: number): WebhookEnvelope {
  const envelope = { webhook_id: `wh-${index}`, timestamp: "2024-01-02T03:04:05Z", events };
  return parseWebhookEnvelope(Buffer.from(JSON.stringify(envelope)));
}

type Failure = "before" | "inside";

/** Fails now and then: before its first statement, or when all of it has been written. */
function unreliable(parties: PartyLedger, failures: readonly (Failure | undefined)[]): PartyLedger {
  let calls = 0;
  const disturb =
    <Event>(apply: (event: Event, tx?: object) => Awaitable<void>) =>
    (event: Event, tx?: object): Awaitable<void> => {
      const failure = failures[calls];
      calls += 1;
      if (failure === "before") throw new Error("a failure before the first statement");
      const applied = apply(event, tx);
      const end = (): void => {
        if (failure === "inside") throw new Error("a failure inside the transaction");
      };
      // On SQLite nothing may wait.
      if (!(applied instanceof Promise)) return end();
      return (async () => {
        await applied;
        end();
      })();
    };
  return {
    ...parties,
    changeBuyer: disturb(parties.changeBuyer),
    changeSeller: disturb(parties.changeSeller),
    closePaymentRequest: disturb(parties.closePaymentRequest),
    countReminder: disturb(parties.countReminder),
    record: disturb(parties.record),
  };
}

const failureLists = fc.array(fc.constantFrom<Failure | undefined>("before", "inside", undefined), {
  maxLength: 20,
});

for (const engine of testEngines) {
  // A run on a server takes a hundred times as long.
  const numRuns = engine.name === "SQLite" ? 150 : 25;
  engine.describe(`the webhook handler on ${engine.name}`, () => {
    test("applies each event once and ends in the service's state, in whatever order, grouping and repetition a stream arrives", async () => {
      const opened = await engine.open();
      const { stores, parties } = opened;
      const logger = pino({ level: "silent" });
      const property = fc.asyncProperty(arrivals, failureLists, async (stream, failures) => {
        const { events, state, webhooks } = stream;
        await opened.empty();
        const handler = createPartyHandler({
          stores,
          parties: unreliable(parties, failures),
          logger,
        });
        for (const webhook of webhooks) {
          // As the service does: again until it is acknowledged.
          while (!(await handler.handle(webhook)).acknowledged);
        }
        expect(await parties.inspectState()).toEqual(state);
        const inspected = await parties.inspectEvents();
        const applied = new Map(inspected.map((event) => [event.event_id, event.applied]));
        expect(applied).toEqual(new Map(events.map(({ event_id }) => [event_id, 1])));
      });
      try {
        await fc.assert(property, { numRuns });
      } finally {
        await opened.close();
      }
    }, 60_000);
  });
}
