import { AsyncLocalStorage } from "node:async_hooks";
import { onTraceEnd, traces, type PublishedEvents } from "@countersign/core";
import { afterEach, expect, test } from "@jest/globals";
import { badEvent, createHandler, handleAll, memoryStore, wireEvent } from "./event-kit.ts";

const ends: (() => unknown)[] = [];

// A file before this one may have left a subscriber in the process.
const subscribed = (): boolean[] => [traces.event].map(({ hasSubscribers }) => hasSubscribers);
const subscribedBefore = subscribed();

afterEach(() => {
  while (ends.length > 0) ends.pop()?.();
  expect(subscribed()).toEqual(subscribedBefore);
});

function record(): PublishedEvents["event"][] {
  const heard: PublishedEvents["event"][] = [];
  ends.push(onTraceEnd(traces.event, (context) => heard.push(context)));
  return heard;
}

test("each event is one trace with its type, attempt and outcome", async () => {
  const heard = record();
  const handler = createHandler({ maxAttempts: 2, onDeadLetter: () => undefined })
    .on("buyer.status_changed", ({ event_id }) => {
      if (event_id === "bad") throw new Error("no such buyer");
    })
    .onOther("app.thing", () => undefined);
  await handleAll(
    handler,
    "a",
    "bad",
    wireEvent("c", { type: "app.thing" }),
    wireEvent("d", { type: 'x"y' }),
  );
  await handleAll(handler, "a", "bad", badEvent("e"));
  expect(
    heard.map(({ eventId, type, isKnownType, attempt, outcome }) => [
      eventId,
      type,
      isKnownType,
      attempt,
      outcome,
    ]),
  ).toEqual([
    ["a", "buyer.status_changed", true, 1, "done"],
    ["bad", "buyer.status_changed", true, 1, "failed"],
    ["c", "app.thing", false, 1, "done"],
    ["d", 'x\\"y', false, undefined, "ignored"],
    ["a", "buyer.status_changed", true, undefined, "duplicate"],
    ["bad", "buyer.status_changed", true, 2, "dead-lettered"],
    ["e", "buyer.status_changed", true, 1, "dead-lettered"],
  ]);
  for (const { webhookId, durationMs } of heard) {
    expect([webhookId, durationMs]).toEqual(["wh_1", expect.any(Number)]);
  }
});

test("a handler runs inside of what is bound to the start of its event", async () => {
  const spans = new AsyncLocalStorage<unknown>();
  traces.event.start.bindStore(spans, (context) => Object(context).eventId);
  ends.push(() => traces.event.start.unbindStore(spans));
  const seen: unknown[] = [];
  const handler = createHandler({ store: memoryStore(), concurrency: 2 }).on(
    "buyer.status_changed",
    async () => {
      await new Promise(setImmediate);
      seen.push(spans.getStore());
    },
  );
  await handleAll(handler, "a", "b", "c");
  expect(seen).toEqual(["a", "b", "c"]);
});
