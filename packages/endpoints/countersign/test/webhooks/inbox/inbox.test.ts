import { describe, expect, test } from "@jest/globals";
import { gracefulClose, parseWebhookEnvelope, TaskError, type WebhookEnvelope } from "countersign/webhooks";
import { createServer } from "node:http";
import { afterTest } from "@countersign/test-support/runs/after-test.ts";
import type { EventFailure } from "../../../dist/webhooks/events/webhook-handler-types.js";
import { collectNotices, eventually, gate, outcomes, sleep } from "../events/event-kit.ts";
import { buyerEvent, otherEvent, send, SharedDatabase, webhook, type TestInbox } from "./inbox-kit.ts";

const buyer = "buyer.status_changed";

function read(...events: readonly string[]): WebhookEnvelope {
  return parseWebhookEnvelope(Buffer.from(webhook(...events)));
}

async function take(inbox: TestInbox, ...events: readonly string[]): Promise<string[]> {
  return outcomes(await inbox.handle(read(...events)));
}

describe("a webhook at an inbox", () => {
  test("is acknowledged by its commit, while its handler has not ended", async () => {
    const app = new SharedDatabase().open();
    const { promise, open } = gate();
    const inbox = app.inbox().onAtLeastOnce(buyer, () => promise);
    // Not as JSON.stringify would write it.
    const text = buyerEvent("ev_1").replace('"ACTIVE"', '"\\u0041CTIVE", "rate" : 1.10,"events":[ 1e2 ]');
    expect(await send(inbox, webhook(text))).toBe(200);
    expect(await app.task("ev_1")).toMatchObject({
      state: "open",
      entity: "buyer:b1",
      body: `{"webhook_id":"wh_1","event":${text}}`,
    });
    open();
    await app.ended("ev_1");
    expect(await app.task("ev_1")).toMatchObject({ state: "done", attempts: 1, failures: [] });
  });

  test("runs its handler once, whose writes commit with the event's end, and is a duplicate then", async () => {
    const app = new SharedDatabase().open();
    const contexts: unknown[] = [];
    const inbox = app.inbox().on(buyer, ({ event_id, data }, { tx, attempt, webhookId }) => {
      contexts.push([webhookId, attempt, data.new_status]);
      app.write(tx, event_id);
    });
    expect(await send(inbox, webhook(buyerEvent("ev_1")))).toBe(200);
    await app.ended("ev_1");
    expect(await send(inbox, webhook(buyerEvent("ev_1")))).toBe(200);
    expect(await take(inbox, buyerEvent("ev_1"), buyerEvent("ev_2"), buyerEvent("ev_2"))).toEqual([
      "duplicate",
      "accepted",
      "duplicate",
    ]);
    await app.ended("ev_2");
    expect(app.effects()).toEqual(["ev_1", "ev_2"]);
    expect(contexts).toEqual([
      ["wh_1", 1, "ACTIVE"],
      ["wh_1", 1, "ACTIVE"],
    ]);
  });

  test("with an id of another type is sent again; the others are taken", async () => {
    const app = new SharedDatabase().open();
    const failures: EventFailure[] = [];
    const inbox = app
      .inbox({ onError: (failure) => void failures.push(failure) })
      .on(buyer, () => {})
      .onOther("loan.granted", () => {});
    expect(await take(inbox, buyerEvent("ev_1"), otherEvent("ev_2", "loan.lost"))).toEqual([
      "accepted",
      "ignored",
    ]);
    expect(await send(inbox, webhook(otherEvent("ev_1"), buyerEvent("ev_3")))).toBe(404);
    expect(failures.map(({ event_id, error }) => [event_id, (error as { code?: unknown }).code])).toEqual([
      ["ev_1", "event-id-reused"],
    ]);
    await app.ended("ev_1", "ev_3");
  });

  test.each([
    ["half of a surrogate pair", (text: string) => text.replace('"b1"', String.raw`"\ud83d"`), "ev_bad"],
    ["data of another type", (text: string) => text.replace('"b1"', "5"), "ev_bad"],
    ["a time that is none", (text: string) => text.replace("2024-01-02T", "2024-13-02T"), "ev_bad"],
    ["no id", (text: string) => text.replace('"event_id":"ev_bad",', ""), ""],
    ["nothing that an event has", () => "[]", ""],
  ])("keeps an event with %s as a dead letter at once, and takes the others", async (_what, spoil, id) => {
    const notices = collectNotices();
    const app = new SharedDatabase().open();
    const dead: EventFailure[] = [];
    const inbox = app
      .inbox({ onDeadLetter: (failure) => void dead.push(failure) })
      .on(buyer, ({ event_id }, { tx }) => app.write(tx, event_id));
    const bad = spoil(buyerEvent("ev_bad"));
    const sent = webhook(buyerEvent("ev_1"), bad, buyerEvent("ev_2"));
    expect(await send(inbox, sent)).toBe(200);
    await app.ended("ev_1", "ev_2");
    await eventually(() => dead.length === 1);
    expect(app.effects()).toEqual(["ev_1", "ev_2"]);
    expect(dead).toMatchObject([
      { webhookId: "wh_1", event_id: id, attempt: 1, outcome: "dead-lettered", event: undefined },
    ]);
    expect(dead[0]?.invalid?.raw).toEqual(JSON.parse(bad));
    expect(dead[0]?.error).toMatchObject({ code: dead[0]?.invalid?.code });
    expect(notices.map(({ code }) => code)).toEqual(["task-dead"]);
    const { tasks } = await app.stores.work.list({ queue: "inbox", state: "dead", limit: 10 });
    expect(tasks.map((task) => task.body)).toEqual([`{"webhook_id":"wh_1","event":${bad}}`]);
    expect(outcomes(await inbox.handle(parseWebhookEnvelope(Buffer.from(sent))))).toEqual([
      "duplicate",
      "duplicate",
      "duplicate",
    ]);
  });

  test("takes an event as it should be beside a malformed one with its id, in either order", async () => {
    collectNotices();
    const app = new SharedDatabase().open();
    const inbox = app.inbox().on(buyer, ({ event_id }, { tx }) => app.write(tx, event_id));
    const bad = (id: string): string => buyerEvent(id).replace('"b1"', "5");
    const all = [bad("ev_1"), buyerEvent("ev_1"), buyerEvent("ev_2"), bad("ev_2")];
    expect(await take(inbox, ...all)).toEqual(Array(4).fill("accepted"));
    await app.ended("ev_1", "ev_2");
    expect(app.effects()).toEqual(["ev_1", "ev_2"]);
  });

  test("hands a dead letter that the code reads by now to its handler, once for its id", async () => {
    collectNotices();
    const app = new SharedDatabase().open();
    const inbox = app.inbox().on(buyer, ({ event_id }, { tx }) => app.write(tx, event_id));
    await take(inbox, buyerEvent("ev_0"));
    await app.ended("ev_0");
    // As earlier versions of the code have left them, which did not know this form of an event.
    const left = ["ev_0", "ev_1"].map((id) => ({
      id: `${id}\tmalformed-1`,
      body: `{"webhook_id":"wh_1","event":${buyerEvent(id)}}`,
    }));
    await app.stores.transactions.run((tx) => app.stores.work.add(tx, "inbox", left));
    await app.ended("ev_0\tmalformed-1", "ev_1\tmalformed-1");
    await eventually(() => app.effects().length === 2);
    expect(app.effects()).toEqual(["ev_0", "ev_1"]);
  });

  test("with an event that cannot be a task is sent again for that one alone", async () => {
    const app = new SharedDatabase().open();
    const errors: unknown[] = [];
    const inbox = app.inbox({
      fallback: () => {},
      entityOf: ({ event_id }) => {
        if (event_id === "ev_4") throw new Error("has no entity");
        // As without TypeScript; nobody hears of the rejection.
        if (event_id === "ev_6") return Promise.reject(new Error("not found")) as never;
        return event_id === "ev_2" ? "" : undefined;
      },
      onError: ({ error }) => void errors.push(error),
    });
    const ids = ["ev_1", "ev_2", "ev_3", "ev_4", "ev_5", "ev_6"];
    expect(await take(inbox, ...ids.map((id) => buyerEvent(id)))).toEqual([
      "accepted",
      "failed",
      "accepted",
      "failed",
      "accepted",
      "failed",
    ]);
    expect(errors).toMatchObject([
      { message: expect.stringMatching(/entity must be/) },
      { message: expect.stringMatching(/entityOf failed/) },
      { message: expect.stringMatching(/entityOf failed/), cause: { message: "it returned a promise" } },
    ]);
  });

  test("is taken as a whole or not at all where a transaction fails: later events stay behind", async () => {
    const app = new SharedDatabase().open();
    const { work } = app.stores;
    const busy = Object.assign(new Error("database is locked"), { code: "SQLITE_BUSY" });
    let isBusy = true;
    const failing = Object.create(work) as typeof work;
    failing.add = (tx, queue, tasks) => {
      if (isBusy && tasks.some(({ id }) => id === "ev_0")) throw busy;
      return work.add(tx, queue, tasks);
    };
    const inbox = app
      .inbox({ stores: { ...app.stores, work: failing }, receiveOnly: true })
      .on(buyer, () => {});
    const ids = Array.from({ length: 60 }, (_, index) => `ev_${index}`);
    const events = ids.map((id) => buyerEvent(id));
    expect(new Set(await take(inbox, ...events))).toEqual(new Set(["busy"]));
    expect(await work.summaries()).toEqual([]);
    isBusy = false;
    expect(new Set(await take(inbox, ...events))).toEqual(new Set(["accepted"]));
    const { tasks } = await work.list({ queue: "inbox", limit: 100 });
    expect(tasks.map(({ id }) => id)).toEqual(ids);
  });

  test("of more events than a transaction takes keeps their order", async () => {
    const app = new SharedDatabase().open();
    const inbox = app.inbox().on(buyer, ({ event_id }, { tx }) => app.write(tx, event_id));
    const ids = Array.from({ length: 120 }, (_, index) => `ev_${index}`);
    expect(new Set(await take(inbox, ...ids.map((id) => buyerEvent(id))))).toEqual(new Set(["accepted"]));
    await app.ended(...ids);
    expect(app.effects()).toEqual(ids);
  });

  test("is a TypeError at an inbox without handlers, which would keep nothing", async () => {
    const inbox = new SharedDatabase().open().inbox({ receiveOnly: true });
    await expect(inbox.handle(read(buyerEvent("ev_1")))).rejects.toThrow("register them here too");
  });

  test("is taken by onAny() alone, also before start()", async () => {
    const app = new SharedDatabase().open();
    const inbox = app.inbox().onAny(({ event_id }, { tx }) => app.write(tx, event_id));
    expect(await take(inbox, buyerEvent("ev_1"), otherEvent("ev_2"))).toEqual(["accepted", "accepted"]);
    await app.ended("ev_1", "ev_2");
    // Two entities: either may be first.
    expect(app.effects()).toHaveLength(2);
    expect(app.effects()).toEqual(expect.arrayContaining(["ev_1", "ev_2"]));
  });

  test("that parseWebhookEnvelope() did not make is a TypeError", async () => {
    const inbox = new SharedDatabase().open().inbox({ fallback: () => {} });
    const made = { ...read(), events: [{ ...read(buyerEvent("ev_1")).events[0] }] } as WebhookEnvelope;
    await expect(inbox.handle(made)).rejects.toThrow("parseWebhookEnvelope() made");
  });
});

describe("an event of an inbox", () => {
  test("waits behind the failed one of its entity; others go on; the record has the reasons", async () => {
    const app = new SharedDatabase().open();
    const inbox = app.inbox().on(buyer, ({ event_id }, { tx, attempt }) => {
      app.write(tx, event_id);
      if (event_id === "head" && attempt < 3) throw new TaskError(`attempt ${attempt}`, { retryInMs: 30 });
    });
    await take(inbox, buyerEvent("head"), buyerEvent("next"), buyerEvent("other", { buyer: "b2" }));
    await app.ended("next", "other");
    expect(app.effects()).toEqual(["other", "head", "next"]);
    const { attempts, failures } = await app.task("head");
    expect(attempts).toBe(3);
    expect(failures.map(({ attempt, reason }) => [attempt, reason])).toEqual([
      [1, "attempt 1"],
      [2, "attempt 2"],
    ]);
  });

  test("is worked on by the next process when this one dies after the acknowledgement", async () => {
    const shared = new SharedDatabase();
    const first = shared.open();
    const receiving = first.inbox({ receiveOnly: true }).on(buyer, () => {
      throw new Error("only receives");
    });
    receiving.start();
    expect(await send(receiving, webhook(buyerEvent("ev_1")))).toBe(200);
    // Longer than it would take a worker to see it.
    await sleep(30);
    expect(await first.task("ev_1")).toMatchObject({ state: "open", attempts: 0 });
    const next = shared.open();
    next
      .inbox()
      .on(buyer, ({ event_id }, { tx }) => next.write(tx, event_id))
      .start();
    await next.ended("ev_1");
    expect(next.effects()).toEqual(["ev_1"]);
  });

  test("is done once by several processes", async () => {
    const shared = new SharedDatabase();
    const processes = [shared.open(), shared.open()];
    const inboxes = processes.map((app) =>
      app.inbox({ concurrency: 3 }).on(buyer, ({ event_id }, { tx }) => app.write(tx, event_id)),
    );
    const ids = Array.from({ length: 60 }, (_, index) => `ev_${index}`);
    const events = ids.map((id, index) => buyerEvent(id, { buyer: `b${index % 7}` }));
    await Promise.all(inboxes.map((inbox) => take(inbox, ...events)));
    const [app] = processes;
    await app?.ended(...ids);
    expect(app?.effects()).toHaveLength(ids.length);
    expect(new Set(app?.effects())).toEqual(new Set(ids));
    const order = app?.effects().filter((id) => Number(id.slice(3)) % 7 === 0);
    expect(order).toEqual(ids.filter((_, index) => index % 7 === 0));
  });

  test("whose worker fell silent is another's: the late one commits nothing", async () => {
    let aheadMs = 0;
    const shared = new SharedDatabase(() => Date.now() + aheadMs);
    const [slow, other] = [shared.open(), shared.open()];
    const { promise, open } = gate();
    const late: unknown[] = [];
    slow
      .inbox()
      .onAtLeastOnce(buyer, async ({ event_id }, { commit, signal }) => {
        await promise;
        try {
          await commit((tx) => slow.write(tx, `late ${event_id}`));
        } catch (error) {
          late.push(signal.aborted, error);
          throw error;
        }
      })
      .start();
    await take(slow.inbox({ receiveOnly: true, fallback: () => {} }), buyerEvent("ev_1"));
    await eventually(async () => (await slow.task("ev_1")).attempts === 1);
    aheadMs = 60_000;
    other
      .inbox()
      .on(buyer, ({ event_id }, { tx }) => other.write(tx, event_id))
      .start();
    await other.ended("ev_1");
    open();
    await eventually(() => late.length === 2);
    expect(late[1]).toMatchObject({ message: "another worker has the task" });
    expect(other.effects()).toEqual(["ev_1"]);
    expect(await other.task("ev_1")).toMatchObject({ state: "done", attempts: 2 });
    expect((await other.task("ev_1")).failures).toMatchObject([{ attempt: 1, reason: "lease-expired" }]);
  });

  test("becomes a dead letter, lets its entity go on, and runs again when an operator says so", async () => {
    const notices = collectNotices();
    const app = new SharedDatabase().open();
    const dead: EventFailure[] = [];
    let isRepaired = false;
    const inbox = app
      .inbox({
        maxAttempts: 2,
        onDeadLetter(failure) {
          dead.push(failure);
          throw new Error("disk full");
        },
      })
      .on(buyer, ({ event_id }, { tx }) => {
        if (event_id === "final") throw new TaskError("no such buyer", { isFinal: true });
        if (event_id === "bad" && !isRepaired) throw new RangeError("no such account");
        app.write(tx, event_id);
      });
    await take(inbox, buyerEvent("bad"), buyerEvent("final"), buyerEvent("next"));
    await app.ended("bad", "final", "next");
    await eventually(() => dead.length === 2);
    expect(dead).toMatchObject([
      { event_id: "bad", webhookId: "wh_1", type: buyer, attempt: 2, outcome: "dead-lettered" },
      { event_id: "final", attempt: 1, error: { message: "no such buyer" } },
    ]);
    expect(dead[0]?.event?.timestamp.raw).toBe("2024-01-02T03:04:05.000000000Z");
    expect((await app.task("bad")).failures.map(({ reason }) => reason)).toEqual([
      "RangeError: no such account",
      "RangeError: no such account",
    ]);
    expect(new Set(notices.map(({ code }) => code))).toEqual(new Set(["dead-letter-failed", "task-dead"]));
    isRepaired = true;
    expect(await app.stores.work.retry("inbox", { ids: ["bad"] })).toBe(1);
    await eventually(() => app.effects().length === 2);
    expect(app.effects()).toEqual(["next", "bad"]);
  });

  test("of a type without a handler here is not lost", async () => {
    const shared = new SharedDatabase();
    const app = shared.open();
    await take(app.inbox({ receiveOnly: true, fallback: () => {} }), buyerEvent("ev_1"));
    const failures: EventFailure[] = [];
    app
      .inbox({ onError: (failure) => void failures.push(failure), backoffMs: 10_000, maxBackoffMs: 10_000 })
      .start();
    await eventually(() => failures.length === 1);
    expect(failures).toMatchObject([{ outcome: "failed", attempt: 1 }]);
    expect(await app.task("ev_1")).toMatchObject({ state: "open", attempts: 1 });
  });

  test("whose stored body is no event is a dead letter", async () => {
    collectNotices();
    const app = new SharedDatabase().open();
    const { transactions, work } = app.stores;
    await transactions.run((tx) => work.add(tx, "inbox", [{ id: "ev_1", body: '{"event":{}}' }]));
    app.inbox({ fallback: () => {} }).start();
    await app.ended("ev_1");
    expect(await app.task("ev_1")).toMatchObject({ state: "dead", attempts: 1 });
  });
});

test("a handler that returns a promise on SQLite has written nothing", async () => {
  collectNotices();
  const app = new SharedDatabase().open();
  const inbox = app.inbox({ maxAttempts: 1 }).on(buyer, ({ event_id }, { tx }) => {
    app.write(tx, event_id);
    return Promise.resolve() as unknown as undefined;
  });
  await take(inbox, buyerEvent("ev_1"));
  await app.ended("ev_1");
  expect(await app.task("ev_1")).toMatchObject({ state: "dead" });
  expect(app.effects()).toEqual([]);
});

describe("onAtLeastOnce()", () => {
  test("commits what commit() writes with the event's end; what fails in it is undone and tried again", async () => {
    const app = new SharedDatabase().open();
    const got: unknown[] = [];
    const inbox = app
      .inbox()
      .onAtLeastOnce(buyer, async ({ event_id }, { attempt, commit }) => {
        got.push(
          await commit((tx) => {
            app.write(tx, event_id);
            if (attempt === 1) throw new Error("not yet");
            return attempt;
          }),
        );
        await expect(commit(() => {})).rejects.toThrow("commit() ends the task");
      })
      .onOtherAtLeastOnce("loan.granted", async (_event, { commit }) => commit(() => {}));
    await take(inbox, buyerEvent("ev_1"), otherEvent("ev_2"));
    await app.ended("ev_1", "ev_2");
    expect(got).toEqual([2]);
    expect(app.effects()).toEqual(["ev_1"]);
    expect(await app.task("ev_1")).toMatchObject({ state: "done", attempts: 2 });
  });

  test("fails by a commit() that rejects and that nobody awaits, and the process lives", async () => {
    const app = new SharedDatabase().open();
    const reasons: unknown[] = [];
    const note = (reason: unknown): void => void reasons.push(reason);
    process.on("unhandledRejection", note);
    afterTest(() => process.off("unhandledRejection", note));
    const inbox = app.inbox().onAtLeastOnce(buyer, ({ event_id }, { attempt, commit }) => {
      void commit((tx) => {
        app.write(tx, event_id);
        if (attempt === 1) throw new Error("not yet");
      });
    });
    await take(inbox, buyerEvent("ev_1"));
    await app.ended("ev_1");
    expect([app.effects(), reasons]).toEqual([["ev_1"], []]);
    expect(await app.task("ev_1")).toMatchObject({ state: "done", attempts: 2 });
  });

  test("takes an async function in commit() for a mistake on SQLite, and commits nothing", async () => {
    const app = new SharedDatabase().open();
    const inbox = app.inbox({ maxAttempts: 1 }).onAtLeastOnce(buyer, async ({ event_id }, { commit }) => {
      // @ts-expect-error -- a promise
      await commit(async (tx) => app.write(tx, event_id));
    });
    collectNotices();
    await take(inbox, buyerEvent("ev_1"));
    await app.ended("ev_1");
    expect(await app.task("ev_1")).toMatchObject({ state: "dead" });
    expect(app.effects()).toEqual([]);
  });
});

describe("a process that ends", () => {
  test("takes no webhook any more, awaits its handlers, and leaves the rest to others", async () => {
    const app = new SharedDatabase().open();
    const { promise, open } = gate();
    const begun: string[] = [];
    const inbox = app.inbox({ concurrency: 1 }).onAtLeastOnce(buyer, async ({ event_id }) => {
      begun.push(event_id);
      await promise;
    });
    const close = gracefulClose(createServer(), { endpoints: [inbox] });
    await take(inbox, buyerEvent("ev_1"), buyerEvent("ev_2", { buyer: "b2" }));
    await eventually(() => begun.length === 1);
    const closed = close();
    await eventually(async () => (await take(inbox, buyerEvent("ev_3")))[0] === "unavailable");
    open();
    expect(await closed).toEqual({ connections: 0, keys: 0, claims: 0 });
    expect(begun).toEqual(["ev_1"]);
    expect(await app.task("ev_1")).toMatchObject({ state: "done" });
    expect(await app.task("ev_2")).toMatchObject({ state: "open", attempts: 0 });
    inbox.start();
  });

  test("reports a handler that does not end, and aborts its signal", async () => {
    const app = new SharedDatabase().open();
    const signals: AbortSignal[] = [];
    const inbox = app.inbox().onAtLeastOnce(buyer, async (_event, { signal }) => {
      signals.push(signal);
      await new Promise((resolve) => signal.addEventListener("abort", resolve, { once: true }));
    });
    await take(inbox, buyerEvent("ev_1"));
    await eventually(() => signals.length === 1);
    expect(await inbox.drain({ timeoutMs: 1 })).toEqual({ keys: 1, claims: 0 });
    expect(signals[0]?.aborted).toBe(true);
    await app.ended("ev_1");
  });
});
