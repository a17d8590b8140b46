import { describe, expect, test } from "@jest/globals";
import { createInbox, createWebhookHandler, type WebhookEventMap } from "countersign/webhooks";
import * as fc from "fast-check";
import {
  collectNotices,
  createHandler,
  envelope,
  eventually,
  faultyStore,
  sqlite,
  wireEvent,
  type Fault,
  type WireEvent,
} from "./event-kit.ts";
import { fuzzRuns } from "@countersign/test-support/runs/share.ts";

const parties = 3;

/** Where handlers of a run fail, by the number of the call; cycled through. */
type Failures = readonly ("yes" | "no")[];

interface Stream {
  readonly events: readonly WireEvent[];
  /** Deliveries: each a list of positions in `events`, several at the same time. */
  readonly waves: readonly (readonly (readonly number[])[])[];
  readonly failures: Failures;
  readonly faults: readonly Fault[];
  readonly concurrency: number;
  readonly yields: readonly boolean[];
}

// Each event has a time of its own, so that one final state is right.
const stream: fc.Arbitrary<Stream> = fc
  .array(fc.integer({ min: 0, max: parties - 1 }), { minLength: 1, maxLength: 12 })
  .chain((owners) => {
    const position = fc.integer({ min: 0, max: owners.length - 1 });
    const delivery = fc.array(position, { maxLength: 6 });
    return fc.record({
      events: fc.constant(owners.map((party, at) => statusEvent(party, at))),
      waves: fc.array(fc.array(delivery, { minLength: 1, maxLength: 3 }), { maxLength: 6 }),
      failures: fc.array(fc.constantFrom("yes" as const, "yes", "no"), {
        maxLength: 10,
      }),
      faults: fc.array(fc.constantFrom<Fault>("throws before", "throws after", "as usual"), {
        maxLength: 12,
      }),
      concurrency: fc.integer({ min: 1, max: 4 }),
      yields: fc.array(fc.boolean(), { minLength: 1, maxLength: 5 }),
    });
  });

function statusEvent(party: number, at: number): WireEvent {
  const data = { buyer_id: `b${party}`, old_status: "PENDING", new_status: `STATUS_${at}` };
  return wireEvent(`ev_${at}`, { at, data });
}

/** The last status of each party: the events are in the order of their times. */
function expectedState(events: readonly WireEvent[]): Map<string, string> {
  return new Map(
    events.map(({ data }) => {
      const { buyer_id, new_status } = data as { buyer_id: string; new_status: string };
      return [buyer_id, new_status];
    }),
  );
}

interface Receiver {
  /** Resolves when what was acknowledged has been worked on. */
  readonly end?: () => Promise<void>;
  readonly handle: ReturnType<typeof createHandler>["handle"];
  effects(): Map<string, number>;
  state(): Map<string, string>;
}

/** Delivers the waves, then everything again until all is acknowledged. */
async function deliver({ events, waves }: Stream, receivers: readonly Receiver[]): Promise<void> {
  for (const wave of waves) {
    const envelopes = wave.map((positions) => envelope(...positions.flatMap((at) => events[at] ?? [])));
    // oxlint-disable-next-line no-await-in-loop -- wave after wave
    await Promise.all(envelopes.map(async (received, index) => pick(receivers, index)?.handle(received)));
  }
  for (let tries = 0; tries < 5_000; tries += 1) {
    // oxlint-disable-next-line no-await-in-loop -- until the service has its 2xx
    const outcome = await pick(receivers, tries)?.handle(envelope(...events));
    if (outcome?.acknowledged === true) return;
    // oxlint-disable-next-line no-await-in-loop -- what is settled in the background has to come through
    await new Promise((resolve) => setImmediate(resolve));
  }
  throw new Error("the stream was never acknowledged");
}

function pick<T>(items: readonly T[], index: number): T | undefined {
  return items[index % items.length];
}

function cycle<T>(items: readonly T[], fallback: T): () => T {
  let call = -1;
  return () => {
    call += 1;
    return items[call % items.length] ?? fallback;
  };
}

function once(events: readonly WireEvent[]): Map<string, number> {
  return new Map(events.map(({ event_id }) => [event_id, 1]));
}

/** Handlers whose effect is in memory and the last thing that they do. */
function memoryReceivers(model: Stream, asynchronous: boolean): Receiver[] {
  const store = faultyStore({ asynchronous });
  const fault = cycle(model.faults, "as usual");
  // Faults end: a store that is down for ever acknowledges nothing.
  store.fail("claim", ...Array.from({ length: 20 }, fault));
  const effects = new Map<string, number>();
  const state = new Map<string, string>();
  const failure = failing(model.failures);
  const yields = cycle(model.yields, false);
  const newest = new Map<string, bigint>();
  const apply = async ({
    event_id,
    timestamp,
    data,
  }: WebhookEventMap["buyer.status_changed"]): Promise<void> => {
    if (yields()) await new Promise((resolve) => setImmediate(resolve));
    if (failure() !== "no") throw new Error("fails before its effect");
    effects.set(event_id, (effects.get(event_id) ?? 0) + 1);
    if (timestamp.epochNanoseconds < (newest.get(data.buyer_id) ?? 0n)) return;
    newest.set(data.buyer_id, timestamp.epochNanoseconds);
    state.set(data.buyer_id, data.new_status);
  };
  return [1, 2].map(() => {
    const handler = createHandler({ store, concurrency: model.concurrency }).on(
      "buyer.status_changed",
      apply,
    );
    return { handle: (received) => handler.handle(received), effects: () => effects, state: () => state };
  });
}

function failing(failures: Failures): () => Failures[number] {
  const next = cycle(failures, "no");
  let left = 30;
  return () => {
    left -= 1;
    return left > 0 ? next() : "no";
  };
}

/** Tables in which the last status written is a buyer's. */
function kept() {
  const { stores, database } = sqlite();
  database.exec(`
    CREATE TABLE effects (event_id TEXT NOT NULL) STRICT;
    CREATE TABLE buyers (id TEXT NOT NULL PRIMARY KEY, status TEXT NOT NULL) STRICT`);
  const insert = database.prepare("INSERT INTO effects VALUES (?)");
  const upsert = database.prepare("INSERT OR REPLACE INTO buyers VALUES (?, ?)");
  return { stores, database, insert, upsert };
}

/** Handlers whose effect and event are in one transaction of ours, which lets no older event through. */
function transactionReceivers(model: Stream): Receiver[] {
  const { stores, database, insert, upsert } = kept();
  const failure = failing(model.failures);
  return [1, 2].map(() => {
    const handler = createWebhookHandler({
      stores,
      fallback: "ignore",
      onError: () => {},
      keyPrefix: "webhook-event:",
    }).on(
      "buyer.status_changed",
      ({ event_id, data }) => {
        insert.run(event_id);
        upsert.run(data.buyer_id, data.new_status);
        if (failure() !== "no") throw new Error("fails before its commit");
      },
      { latestOnly: { onStale: ({ event_id }) => void insert.run(event_id) } },
    );
    return { handle: (received) => handler.handle(received), ...readingOf(database) };
  });
}

/** Inboxes of two processes on one table of work; each event fails as often as the model says. */
function inboxReceivers(model: Stream): Receiver[] {
  const { stores, database, insert, upsert } = kept();
  const failure = failing(model.failures);
  const yields = cycle(model.yields, false);
  const skip = ({ event_id }: WebhookEventMap["buyer.status_changed"]): void => void insert.run(event_id);
  const apply = ({ event_id, data }: WebhookEventMap["buyer.status_changed"]): void => {
    insert.run(event_id);
    upsert.run(data.buyer_id, data.new_status);
    if (failure() !== "no") throw new Error("fails before its commit");
  };
  const open = (receiveOnly: boolean) => {
    const options = { stores, fallback: "ignore", name: "inbox", onError: () => {}, receiveOnly } as const;
    const often = {
      concurrency: model.concurrency,
      pollMs: 10,
      backoffMs: 1,
      maxBackoffMs: 2,
      maxAttempts: 100,
    };
    const inbox = createInbox({ ...options, ...often });
    return inbox.on("buyer.status_changed", apply, { latestOnly: { onStale: skip } });
  };
  return [1, 2].map(() => {
    const inbox = open(yields());
    const end = async (): Promise<void> => {
      await inbox.drain();
      const next = open(false);
      next.start();
      await eventually(async () => (await stores.work.summaries()).every((queue) => queue.open === 0));
      await next.drain();
    };
    return { handle: (received) => inbox.handle(received), end, ...readingOf(database) };
  });
}

function readingOf(database: ReturnType<typeof sqlite>["database"]): Pick<Receiver, "effects" | "state"> {
  const rows = (sql: string): Record<string, string | number>[] =>
    database.prepare(sql).all() as Record<string, string | number>[];
  return {
    effects: () =>
      new Map(
        rows("SELECT event_id, count(*) AS times FROM effects GROUP BY event_id").map((row) => [
          String(row["event_id"]),
          Number(row["times"]),
        ]),
      ),
    state: () =>
      new Map(rows("SELECT id, status FROM buyers").map((row) => [String(row["id"]), String(row["status"])])),
  };
}

describe("a stream that is redelivered, regrouped and reordered, with failures and deliveries at the same time", () => {
  test.each<[string, (model: Stream) => Receiver[], number]>([
    ["the memory store", (model) => memoryReceivers(model, false), 150],
    ["an asynchronous store", (model) => memoryReceivers(model, true), 60],
    ["SQLite, one transaction and latestOnly", transactionReceivers, 60],
    ["SQLite and inboxes", inboxReceivers, 60],
  ])("takes effect exactly once and ends in the same state, on %s", async (_name, create, runs) => {
    collectNotices();
    await fc.assert(
      fc.asyncProperty(stream, async (model) => {
        const receivers = create(model);
        await deliver(model, receivers);
        // oxlint-disable-next-line no-await-in-loop -- as processes end
        for (const { end } of receivers) await end?.();
        expect(receivers[0]?.effects()).toEqual(once(model.events));
        expect(receivers[0]?.state()).toEqual(expectedState(model.events));
      }),
      fuzzRuns(runs),
    );
  });
});
