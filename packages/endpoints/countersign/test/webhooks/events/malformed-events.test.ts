// What is wrong in one event stays in that event, where the events of a webhook commit together.
import { describe, expect, test } from "@jest/globals";
import { createWebhookHandler } from "countersign/webhooks";
import type { EventFailure } from "../../../dist/webhooks/events/webhook-handler-types.js";
import { badEvent, collectNotices, envelope, failingWays, outcomes, sqlite, wireEvent } from "./event-kit.ts";

const buyer = "buyer.status_changed";

/** A handler whose events commit on SQLite, each with a row of its own. */
function transacting(
  onDeadLetter?: (failure: EventFailure) => unknown,
  times: { readonly transactionTimeoutMs?: number } = {},
) {
  const { stores, database } = sqlite();
  database.exec("CREATE TABLE effects (event_id TEXT)");
  const insert = database.prepare("INSERT INTO effects VALUES (?)");
  const failures: EventFailure[] = [];
  const handler = createWebhookHandler({
    stores,
    fallback: "ignore",
    onDeadLetter,
    ...times,
    onError: (failure) => void failures.push(failure),
  }).on(buyer, ({ event_id: id }) => {
    if (id === "broken") throw new Error("no such buyer");
    insert.run(id);
  });
  const written = (): unknown[] => database.prepare("SELECT event_id FROM effects").pluck().all();
  return { handler, failures, written };
}

describe("a malformed event beside others in one transaction", () => {
  test("is acknowledged with an alarm, and the others commit", async () => {
    const notices = collectNotices();
    const { handler, failures, written } = transacting();
    const sent = envelope("a", badEvent("x"), { ...wireEvent("y"), timestamp: "yesterday" }, "b");
    const outcome = await handler.handle(sent);
    expect(outcome.acknowledged).toBe(true);
    expect(outcomes(outcome)).toEqual(["done", "dead-lettered", "dead-lettered", "done"]);
    expect(written()).toEqual(["a", "b"]);
    expect(notices.map(({ code, error }) => [code, (error as { code?: string }).code])).toEqual([
      ["event-malformed", "data-invalid"],
      ["event-malformed", "timestamp-invalid"],
    ]);
    expect(failures.map(({ event_id, outcome: its }) => [event_id, its])).toEqual([
      ["x", "dead-lettered"],
      ["y", "dead-lettered"],
    ]);
  });

  test("is kept by onDeadLetter before it is acknowledged, without an alarm", async () => {
    const notices = collectNotices();
    const kept: unknown[] = [];
    const { handler, written } = transacting(async ({ event_id, invalid }) => {
      await new Promise((resolve) => setImmediate(resolve));
      kept.push([event_id, invalid?.raw]);
    });
    const bad = badEvent("x");
    expect(outcomes(await handler.handle(envelope(bad, "a")))).toEqual(["dead-lettered", "done"]);
    expect(kept).toEqual([["x", bad]]);
    expect(written()).toEqual(["a"]);
    expect(notices).toEqual([]);
  });

  test.each(failingWays("disk full"))(
    "comes again when onDeadLetter %s; the others do not",
    async (_how, fails) => {
      const notices = collectNotices();
      let calls = 0;
      const { handler, written } = transacting(() => {
        calls += 1;
        return calls === 1 ? fails() : undefined;
      });
      const sent = envelope(badEvent("x"), "a");
      expect(outcomes(await handler.handle(sent))).toEqual(["failed", "done"]);
      expect(notices.map(({ code }) => code)).toEqual(["dead-letter-failed"]);
      expect(outcomes(await handler.handle(sent))).toEqual(["dead-lettered", "duplicate"]);
      expect(written()).toEqual(["a"]);
    },
  );

  test("comes again when onDeadLetter never settles; the webhook is answered", async () => {
    const notices = collectNotices();
    const { handler, written } = transacting(() => new Promise(() => {}), { transactionTimeoutMs: 100 });
    expect(outcomes(await handler.handle(envelope(badEvent("x"), "a")))).toEqual(["failed", "done"]);
    expect(notices.map(({ code, error }) => [code, String(error)])).toEqual([
      ["dead-letter-failed", "Error: onDeadLetter did not settle within 100 ms"],
    ]);
    expect(written()).toEqual(["a"]);
  });

  test("leaves its id to an event as it should be, and does not spoil a batch with a broken handler", async () => {
    collectNotices();
    const { handler, written } = transacting();
    const sent = envelope(badEvent("a"), "broken", "a", "b");
    expect(outcomes(await handler.handle(sent))).toEqual(["dead-lettered", "failed", "done", "done"]);
    expect(written()).toEqual(["a", "b"]);
  });

  test("never reaches a handler of every event", async () => {
    collectNotices();
    const seen: string[] = [];
    const { handler } = transacting();
    handler.onAny(({ event_id }) => void seen.push(event_id));
    await handler.handle(envelope(badEvent("x"), "a"));
    expect(seen).toEqual(["a"]);
  });
});
