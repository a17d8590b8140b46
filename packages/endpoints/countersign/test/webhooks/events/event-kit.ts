import { subscribe, unsubscribe } from "node:diagnostics_channel";
import { afterEach, jest } from "@jest/globals";
import { noticeChannelName, type GuardNotice } from "@countersign/core";
import {
  memoryIdempotencyStore,
  type IdempotencyStore,
  type MemoryIdempotencyStore,
} from "@countersign/idempotency";
import { type SqliteStores, createStores } from "@countersign/store-sql";
import {
  createWebhookHandler,
  parseWebhookEnvelope,
  type CreateWebhookHandlerOptions,
  type WebhookEnvelope,
  type WebhookHandler,
} from "countersign/webhooks";
import type { EventOutcome, WebhookOutcome } from "../../../dist/webhooks/events/webhook-handler-types.js";
import {
  faultyStore as anyFaultyStore,
  type FaultyStore,
} from "@countersign/test-support/runs/faulty-store.ts";
import Database from "libsql";

type Connection = InstanceType<typeof Database>;

export type { Fault } from "@countersign/test-support/runs/faulty-store.ts";
export { eventually, sleep } from "@countersign/test-support/runs/eventually.ts";

const cleanUps: (() => unknown)[] = [];

afterEach(async () => {
  while (cleanUps.length > 0) cleanUps.pop()?.();
  // What was under way in this turn of the event loop went by the clock of the test that has ended.
  await new Promise((resolve) => setImmediate(resolve));
});

export interface WireEvent {
  readonly event_id: string;
  readonly timestamp: string;
  readonly type: string;
  readonly data: unknown;
}

/** An event with a valid body; `at` is nanoseconds within a second. */
export function wireEvent(event_id: string, fields: Partial<WireEvent> & { at?: number } = {}): WireEvent {
  const { at = 0, ...rest } = fields;
  return {
    event_id,
    timestamp: `2024-01-02T03:04:05.${String(at).padStart(9, "0")}Z`,
    type: "buyer.status_changed",
    data: { buyer_id: "b1", old_status: "PENDING", new_status: "ACTIVE" },
    ...rest,
  };
}

export function badEvent(event_id: string): WireEvent {
  return wireEvent(event_id, { data: { buyer_id: 5 } });
}

/** What the receiver makes of these events. Plain ids stand for valid events. */
export function envelope(...events: readonly (WireEvent | string)[]): WebhookEnvelope {
  const body = {
    webhook_id: "wh_1",
    timestamp: "2024-01-02T03:04:05Z",
    events: events.map((event) => (typeof event === "string" ? wireEvent(event) : event)),
  };
  return parseWebhookEnvelope(Buffer.from(JSON.stringify(body)));
}

export function outcomes({ events }: WebhookOutcome): EventOutcome[] {
  return events.map(({ outcome }) => outcome);
}

export async function handleAll(
  handler: WebhookHandler,
  ...events: readonly (WireEvent | string)[]
): Promise<EventOutcome[]> {
  return outcomes(await handler.handle(envelope(...events)));
}

export function memoryStore(): MemoryIdempotencyStore {
  return memoryIdempotencyStore({ max: 1_000 });
}

/** A store on a database in memory, with the connection for transactions. */
export function sqlite(): {
  store: IdempotencyStore;
  stores: SqliteStores<Connection>;
  database: Connection;
} {
  const database = new Database(":memory:");
  const stores = createStores({ database, pruneIntervalMs: 0 });
  cleanUps.push(() => {
    stores.close();
    database.close();
  });
  return { store: stores.idempotency, stores, database };
}

export const storeKinds: readonly (readonly [string, () => IdempotencyStore])[] = [
  ["the memory store", memoryStore],
  ["an asynchronous store", () => faultyStore({ asynchronous: true })],
  ["SQLite", () => sqlite().store],
];

/** A handler for tests: quiet about failures, which the tests look at themselves. */
export function createHandler(options: Partial<CreateWebhookHandlerOptions> = {}): WebhookHandler {
  return createWebhookHandler({
    store: memoryStore(),
    fallback: "ignore",
    onError: () => {},
    // Said aloud: tests give one store to several handlers, as processes do.
    keyPrefix: "webhook-event:",
    ...options,
  });
}

/** A store with faults on demand. A synchronous one must have no fault that hangs. */
export function faultyStore({ asynchronous = false } = {}): FaultyStore {
  return anyFaultyStore({ synchronous: !asynchronous });
}

/** The two ways in which a function fails, for test.each. */
export function failingWays(message: string): [how: string, failing: () => unknown][] {
  const error = new Error(message);
  return [
    [
      "throws",
      () => {
        throw error;
      },
    ],
    ["rejects", () => Promise.reject(error)],
  ];
}

/**
 * The clock by which webhooks give the event loop back: it stands, or goes on by `stepMs` each time that somebody looks. At the
 * end of the test it is the real one again.
 */
export function setClock(stepMs: number): void {
  let nowMs = performance.now();
  const clock = jest.spyOn(performance, "now").mockImplementation(() => (nowMs += stepMs));
  cleanUps.push(() => clock.mockRestore());
}

/** Counts the turns of the event loop that others get, until the end of the test. */
export function countTurns(): () => number {
  let turns = 0;
  let counting = true;
  const turn = (): void => {
    turns += 1;
    if (counting) setImmediate(turn);
  };
  setImmediate(turn);
  cleanUps.push(() => {
    counting = false;
  });
  return () => turns;
}

export function gate<T = void>(): {
  promise: Promise<T>;
  open: (value: T) => void;
  fail: (error: Error) => void;
} {
  let open!: (value: T) => void;
  let fail!: (error: Error) => void;
  const promise = new Promise<T>((resolve, reject) => {
    open = resolve;
    fail = reject;
  });
  return { promise, open, fail };
}

/** The notices of a test, which no longer are process warnings. */
export function collectNotices(): GuardNotice[] {
  const notices: GuardNotice[] = [];
  const onNotice = (message: unknown): void => {
    const notice = message as GuardNotice;
    // The channel is the process's: a store of an earlier test file may still publish.
    if (!notice.guard.endsWith("Stores")) notices.push(notice);
  };
  subscribe(noticeChannelName, onNotice);
  cleanUps.push(() => unsubscribe(noticeChannelName, onNotice));
  return notices;
}
