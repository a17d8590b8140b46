import { describe, expect, test } from "@jest/globals";
import type { EventFailure } from "../../../dist/webhooks/events/webhook-handler-types.js";
import type { KnownEventType } from "../../../dist/webhooks/envelope/events.js";
import {
  badEvent,
  collectNotices,
  createHandler,
  envelope,
  handleAll,
  memoryStore,
  outcomes,
  storeKinds,
  wireEvent,
  type WireEvent,
} from "./event-kit.ts";

const buyer = "buyer.status_changed";
const repaid = "payment_request.repayment.repaid";

function repaidEvent(event_id: string): WireEvent {
  return wireEvent(event_id, { type: repaid, data: { payment_request_id: "p1" } });
}

function codesOf(failures: readonly EventFailure[]): unknown[] {
  return failures.map(({ type, outcome, error }) => [type, outcome, (error as { code?: unknown }).code]);
}

describe.each(storeKinds)("one event_id under two types, in %s", (_kind, createStore) => {
  function observed(types: readonly KnownEventType[] = [buyer, repaid], others: readonly string[] = []) {
    const ran: string[] = [];
    const failures: EventFailure[] = [];
    const handler = createHandler({ store: createStore(), onError: (failure) => failures.push(failure) });
    for (const type of types) handler.on(type, () => void ran.push(type));
    for (const type of others) handler.onOther(type, () => void ran.push(type));
    return { handler, ran, failures };
  }

  const reused = [[repaid, "failed", "event-id-reused"]];

  test("does not acknowledge the second one of a webhook", async () => {
    const { handler, ran, failures } = observed();
    const outcome = await handler.handle(envelope("a", repaidEvent("a"), "b"));
    expect(outcomes(outcome)).toEqual(["done", "failed", "done"]);
    expect(outcome.acknowledged).toBe(false);
    expect(ran).toEqual([buyer, buyer]);
    expect(codesOf(failures)).toEqual(reused);
  });

  test("does not acknowledge the one that comes in a later webhook", async () => {
    const { handler, ran, failures } = observed();
    expect(await handleAll(handler, "a")).toEqual(["done"]);
    expect(await handleAll(handler, repaidEvent("a"))).toEqual(["failed"]);
    expect(await handleAll(handler, "a")).toEqual(["duplicate"]);
    expect(ran).toEqual([buyer]);
    expect(codesOf(failures)).toEqual(reused);
  });

  test("handles the one that has a handler when the other is ignored", async () => {
    const { handler, ran } = observed([repaid]);
    const webhook = ["a", repaidEvent("a"), repaidEvent("a")] as const;
    expect(await handleAll(handler, ...webhook)).toEqual(["ignored", "done", "duplicate"]);
    expect(ran).toEqual([repaid]);
  });

  test("handles the valid one when the other is malformed, and goes on telling of that one", async () => {
    const notices = collectNotices();
    const { handler, ran, failures } = observed();
    const webhook = [badEvent("a"), repaidEvent("a")] as const;
    expect(await handleAll(handler, ...webhook)).toEqual(["dead-lettered", "done"]);
    expect(await handleAll(handler, ...webhook)).toEqual(["dead-lettered", "duplicate"]);
    expect(ran).toEqual([repaid]);
    const told = [buyer, "dead-lettered", "data-invalid"];
    expect(codesOf(failures)).toEqual([told, told]);
    expect(notices.map(({ code }) => code)).toEqual(["event-malformed", "event-malformed"]);
  });

  test.each([
    ["of 256 characters", "t".repeat(255)],
    ["outside ASCII", "käufer."],
    ["with spaces", "a b"],
  ])("tells types %s apart", async (_name, type) => {
    const { handler, failures } = observed([], [`${type}1`, `${type}2`]);
    const typed = (last: number): WireEvent => wireEvent("a", { type: `${type}${last}` });
    expect(await handleAll(handler, typed(1), typed(2), typed(1))).toEqual(["done", "failed", "duplicate"]);
    expect(failures).toHaveLength(1);
  });
});

describe("one event_id twice in a webhook", () => {
  test("is skipped and told of when its time is another", async () => {
    const notices = collectNotices();
    const handler = createHandler().on(buyer, () => {});
    const webhook = ["a", wireEvent("a", { at: 1 })] as const;
    expect(await handleAll(handler, ...webhook)).toEqual(["done", "duplicate"]);
    expect(notices.map(({ code }) => code)).toEqual(["event-id-reused"]);
    expect(await handleAll(handler, "a")).toEqual(["duplicate"]);
    expect(await handleAll(handler, wireEvent("a", { at: 2 }))).toEqual(["duplicate"]);
    expect(notices.map(({ code }) => code)).toEqual(["event-id-reused", "event-id-reused"]);
  });

  test("is skipped when whoever wrote to the store named no type", async () => {
    const notices = collectNotices();
    const store = memoryStore();
    const claim = { token: "operator", fingerprint: "f", leaseMs: 60_000, recovery: "rerun" } as const;
    store.claim("webhook-event:a", claim);
    store.complete("webhook-event:a", "operator");
    const handler = createHandler({ store }).on(buyer, () => {});
    expect(await handleAll(handler, "a")).toEqual(["duplicate"]);
    expect(notices.map(({ code }) => code)).toEqual(["event-id-reused"]);
  });

  test("is not acknowledged beside one that fails, whatever its own outcome", async () => {
    const handler = createHandler().on(buyer, () => {
      throw new Error("no such buyer");
    });
    expect(await handleAll(handler, "a", "a", "b")).toEqual(["failed", "failed", "failed"]);
  });
});

test("no key is longer than a store has to take, with the longest prefix, id and number of a failure", async () => {
  const store = memoryStore();
  const keys: string[] = [];
  const claim = store.claim.bind(store);
  store.claim = (key, of) => {
    keys.push(key);
    return claim(key, of);
  };
  const options = { store, keyPrefix: "é".repeat(128), maxAttempts: 100, onDeadLetter: () => {} };
  const handler = createHandler(options).on(buyer, () => {
    throw new Error("no such buyer");
  });
  expect(await handleAll(handler, "e".repeat(256))).toEqual(["failed"]);
  expect(keys).toHaveLength(2);
  expect(Math.max(...keys.map((key) => key.length))).toBeLessThanOrEqual(512);
});

// Handled at once, the second one finds the first at work; the service sends both again until each is taken.
test.each(storeKinds)(
  "two events of one id and other times that are handled at once are both taken in the end, in %s",
  async (_kind, createStore) => {
    const ran: string[] = [];
    const handler = createHandler({ store: createStore(), concurrency: 2 });
    handler.on(buyer, ({ event_id }) => void ran.push(event_id));
    const twice = [wireEvent("a", { at: 1 }), wireEvent("a", { at: 2 })] as const;
    collectNotices();
    await handleAll(handler, ...twice);
    expect(await handleAll(handler, ...twice)).toEqual(["duplicate", "duplicate"]);
    expect(ran).toEqual(["a"]);
  },
);

test("an event whose store gives no known answer is unavailable, and harms no other", async () => {
  const store = Object.assign(memoryStore(), { claim: () => ({ status: "done" }) as never });
  const handler = createHandler({ store });
  handler.on(buyer, () => {});
  expect(await handleAll(handler, "a")).toEqual(["unavailable"]);
});
