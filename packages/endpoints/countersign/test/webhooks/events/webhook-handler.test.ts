import { setImmediate as nextTurn } from "node:timers/promises";
import { afterEach, describe, expect, jest, test } from "@jest/globals";
import type { EventContext, WebhookEvent } from "countersign/webhooks";
import {
  badEvent,
  collectNotices,
  createHandler,
  envelope,
  eventually,
  failingWays,
  faultyStore,
  gate,
  handleAll,
  outcomes,
  sleep,
  storeKinds,
  wireEvent,
  type WireEvent,
} from "./event-kit.ts";
import { expectWarning } from "@countersign/test-support/runs/expect-warning.ts";

const buyer = "buyer.status_changed";

afterEach(() => {
  jest.useRealTimers();
});

describe.each(storeKinds)("createWebhookHandler with %s", (_name, createStore) => {
  test("runs each event once, whatever envelope brings it again", async () => {
    const seen: string[] = [];
    const handler = createHandler({ store: createStore() }).on(
      buyer,
      (event) => void seen.push(event.event_id),
    );
    expect(await handleAll(handler, "a", "b")).toEqual(["done", "done"]);
    expect(await handleAll(handler, "b", "c", "a")).toEqual(["duplicate", "done", "duplicate"]);
    expect(seen).toEqual(["a", "b", "c"]);
  });

  test("runs an id that comes twice in one array once", async () => {
    let runs = 0;
    const handler = createHandler({ store: createStore() }).on(buyer, () => void (runs += 1));
    const outcome = await handler.handle(envelope("a", "b", "a"));
    expect(outcome).toEqual({
      acknowledged: true,
      events: [
        { event_id: "a", type: buyer, outcome: "done" },
        { event_id: "b", type: buyer, outcome: "done" },
        { event_id: "a", type: buyer, outcome: "duplicate" },
      ],
    });
    expect(runs).toBe(2);
  });

  test.each(failingWays("no such buyer"))(
    "goes on with the others when a handler %s, and repeats only what failed",
    async (_how, failing) => {
      let broken = true;
      const seen: string[] = [];
      const handler = createHandler({ store: createStore() }).on(buyer, ({ event_id }) => {
        seen.push(event_id);
        return event_id === "b" && broken ? failing() : undefined;
      });
      const first = await handler.handle(envelope("a", "b", "c", "b"));
      expect(outcomes(first)).toEqual(["done", "failed", "done", "failed"]);
      expect(first.acknowledged).toBe(false);
      broken = false;
      const second = await handler.handle(envelope("a", "b", "c"));
      expect(outcomes(second)).toEqual(["duplicate", "done", "duplicate"]);
      expect(second.acknowledged).toBe(true);
      expect(seen).toEqual(["a", "b", "c", "b"]);
    },
  );

  test("answers busy for what runs already, in this process or another, and leaves it alone", async () => {
    const store = createStore();
    const { promise, open } = gate();
    let runs = 0;
    const one = createHandler({ store }).on(buyer, () => {
      runs += 1;
      return promise;
    });
    const other = createHandler({ store }).on(buyer, () => void (runs += 1));
    const first = one.handle(envelope("a"));
    await eventually(() => runs === 1);
    expect(await handleAll(one, "a")).toEqual(["busy"]);
    const elsewhere = await other.handle(envelope("a", "b"));
    expect(outcomes(elsewhere)).toEqual(["busy", "done"]);
    expect(elsewhere.acknowledged).toBe(false);
    open();
    expect(outcomes(await first)).toEqual(["done"]);
    expect(await handleAll(other, "a")).toEqual(["duplicate"]);
    expect(runs).toBe(2);
  });

  test("answers after timeoutMs, keeps the event while its handler runs, and keeps its late success", async () => {
    const { promise, open } = gate();
    const failures: unknown[] = [];
    let signal: AbortSignal | undefined;
    let runs = 0;
    const handler = createHandler({
      store: createStore(),
      timeoutMs: 30,
      onError: ({ outcome, error }) => failures.push(outcome, error),
    }).on(buyer, (event, context) => {
      if (event.event_id !== "slow") return undefined;
      runs += 1;
      ({ signal } = context);
      return promise;
    });
    expect(await handleAll(handler, "slow", "quick")).toEqual(["timed-out", "done"]);
    expect(signal?.reason).toMatchObject({ code: "event-timed-out" });
    expect(failures).toMatchObject(["timed-out", { code: "event-timed-out" }]);
    expect(await handleAll(handler, "slow")).toEqual(["busy"]);
    open();
    await eventually(async () => (await handleAll(handler, "slow")).join() === "duplicate");
    expect(runs).toBe(1);
  });
});

describe("handle()", () => {
  test("acknowledges an envelope without events", async () => {
    expect(await createHandler().handle(envelope())).toEqual({ acknowledged: true, events: [] });
  });

  test("keeps the order of the array by default", async () => {
    const log: string[] = [];
    const handler = createHandler().on(buyer, async ({ event_id }) => {
      log.push(`${event_id} begins`);
      await sleep(event_id === "a" ? 10 : 0);
      log.push(`${event_id} ends`);
    });
    await handleAll(handler, "a", "b");
    expect(log).toEqual(["a begins", "a ends", "b begins", "b ends"]);
  });

  test("runs as many events at a time as concurrency says, and tells their outcomes in order", async () => {
    const ids = ["a", "b", "c", "d", "e", "f", "g"];
    let running = 0;
    let most = 0;
    const begun: string[] = [];
    const handler = createHandler({ concurrency: 3 }).on(buyer, async ({ event_id }) => {
      begun.push(event_id);
      running += 1;
      most = Math.max(most, running);
      await sleep(event_id === "a" ? 15 : 2);
      running -= 1;
      if (event_id === "f") throw new Error("no such buyer");
    });
    const outcome = await handler.handle(envelope(...ids));
    expect(most).toBe(3);
    expect(begun).toEqual(ids);
    expect(outcome.events.map(({ event_id }) => event_id)).toEqual(ids);
    expect(outcomes(outcome)).toEqual(["done", "done", "done", "done", "done", "failed", "done"]);
  });

  test("says nothing of a time-out to a handler that ended in time", async () => {
    jest.useFakeTimers({ doNotFake: ["setImmediate"] });
    const failures: unknown[] = [];
    let signal: AbortSignal | undefined;
    const handler = createHandler({ timeoutMs: 500, onError: (failure) => failures.push(failure) }).on(
      buyer,
      async (_event, context) => {
        ({ signal } = context);
        await nextTurn();
      },
    );
    expect(await handleAll(handler, "a")).toEqual(["done"]);
    await jest.advanceTimersByTimeAsync(600);
    expect(signal?.aborted).toBe(false);
    expect(failures).toEqual([]);
  });

  /** A store whose event somebody else takes in the handler, which ends when its signal aborts. */
  function lostLease() {
    const notices = collectNotices();
    const store = faultyStore({ asynchronous: true });
    const lose = async ({ signal }: EventContext): Promise<void> => {
      store.inner.release("webhook-event:a", store.inner.read("webhook-event:a")?.token ?? "");
      store.inner.claim("webhook-event:a", claimOf("other"));
      await new Promise((resolve) => signal.addEventListener("abort", resolve));
    };
    const options = { store, leaseMs: 1_000, storeTimeoutMs: 300 };
    return { store, lose, options, codes: () => notices.map(({ code }) => code) };
  }

  test("takes an aborted signal from a lost lease, and lets its late success not stand", async () => {
    const { store, lose, options, codes } = lostLease();
    const handler = createHandler(options).on(buyer, (_event, context) => lose(context));
    expect(await handleAll(handler, "a")).toEqual(["in-doubt"]);
    expect(store.inner.read("webhook-event:a")).toMatchObject({ state: "running", token: "other" });
    expect(codes()).toEqual(["lease-lost", "completion-lost"]);
  });

  test("begins no second handler of an event whose lease was lost in the first", async () => {
    const { lose, options } = lostLease();
    const second = jest.fn();
    const handler = createHandler(options)
      .onAny((_event, context) => lose(context))
      .on(buyer, second);
    expect(await handleAll(handler, "a")).toEqual(["busy"]);
    expect(second).not.toHaveBeenCalled();
  });

  test("does not count as a failure what fails after its lease was lost", async () => {
    const { lose, options } = lostLease();
    const onDeadLetter = jest.fn();
    const handler = createHandler({ ...options, maxAttempts: 1, onDeadLetter }).on(
      buyer,
      async (_event, context) => {
        await lose(context);
        throw new Error("too late");
      },
    );
    expect(await handleAll(handler, "a")).toEqual(["busy"]);
    expect(onDeadLetter).not.toHaveBeenCalled();
  });
});

function claimOf(token: string, leaseMs = 60_000) {
  return { token, fingerprint: "f", leaseMs, recovery: "rerun" } as const;
}

describe("the handlers of an event", () => {
  test("get the event and its context", async () => {
    const seen: [WebhookEvent, EventContext][] = [];
    const handler = createHandler().on(buyer, (event, context) => void seen.push([event, context]));
    const received = envelope("a");
    await handler.handle(received);
    expect(seen).toHaveLength(1);
    expect(seen[0]?.[0]).toBe(received.events[0]);
    expect(seen[0]?.[1]).toMatchObject({ webhookId: "wh_1", attempt: 1 });
    expect(seen[0]?.[1].signal.aborted).toBe(false);
  });

  test("fail with what their promise does, also with one that is a function or throws at its then", async () => {
    const failed = async (): Promise<never> => {
      throw new Error("later");
    };
    const promise = failed();
    const answers: readonly object[] = [
      promise,
      // oxlint-disable-next-line unicorn/no-thenable -- what the test is about
      Object.assign(() => {}, { then: promise.then.bind(promise) }),
      // oxlint-disable-next-line unicorn/no-thenable -- as above
      Object.defineProperty({}, "then", {
        get: () => {
          throw new Error("at once");
        },
      }),
    ];
    for (const answer of answers) {
      const handler = createHandler().on(buyer, () => answer);
      // Given back each time: the second delivery runs it again.
      expect(await handleAll(handler, "a")).toEqual(["failed"]);
      expect(await handleAll(handler, "a")).toEqual(["failed"]);
    }
  });

  test("are chosen by the type, with a fallback for the others", async () => {
    const log: string[] = [];
    const handler = createHandler({ fallback: ({ type }) => void log.push(`fallback ${type}`) })
      .on(buyer, () => void log.push("buyer"))
      .onOther("invoice.created", ({ type }) => void log.push(`own ${type}`));
    const others = [
      wireEvent("u", { type: "invoice.created" }),
      wireEvent("v", { type: "constructor", data: 5 }),
      wireEvent("w", {
        type: "seller.status_changed",
        data: { seller_id: "s", old_status: "A", new_status: "B" },
      }),
    ];
    expect(await handleAll(handler, "a", ...others)).toEqual(["done", "done", "done", "done"]);
    expect(log).toEqual([
      "buyer",
      "own invoice.created",
      "fallback constructor",
      "fallback seller.status_changed",
    ]);
  });

  test('are none with fallback "ignore", which acknowledges without the store', async () => {
    const store = faultyStore();
    const handler = createHandler({ store }).on(buyer, () => {});
    const outcome = await handler.handle(envelope(wireEvent("u", { type: "invoice.created" })));
    expect(outcome).toEqual({
      acknowledged: true,
      events: [{ event_id: "u", type: "invoice.created", outcome: "ignored" }],
    });
    expect(store.calls.claim).toBe(0);
  });

  test.each([
    ["at once", false],
    ["later", true],
  ])("come after onAny(), when that one answers %s without a throw", async (_when, asynchronous) => {
    const log: string[] = [];
    const handler = createHandler({ fallback: () => void log.push("fallback") })
      .on(buyer, () => void log.push("buyer"))
      .onAny(({ event_id }) => {
        log.push(`any ${event_id}`);
        if (event_id !== "bad") return asynchronous ? sleep(1) : undefined;
        if (asynchronous) return Promise.reject(new Error("no"));
        throw new Error("no");
      });
    expect(await handleAll(handler, "a", "bad", wireEvent("u", { type: "new" }))).toEqual([
      "done",
      "failed",
      "done",
    ]);
    expect(log).toEqual(["any a", "buyer", "any bad", "any u", "fallback"]);
  });

  test("are registered once and before the first envelope", async () => {
    const handler = createHandler().on(buyer, () => {});
    expect(() => handler.on(buyer, () => {})).toThrow('type "buyer.status_changed" has a handler already');
    handler.onAny(() => {});
    expect(() => handler.onAny(() => {})).toThrow("there is one already");
    await handler.handle(envelope());
    const late = (): unknown => handler.on("seller.status_changed", () => {});
    expect(late).toThrow("before the first webhook");
    expect(() => handler.onOther("late", () => {})).toThrow("onOther: register every handler before");
    // @ts-expect-error -- JavaScript callers
    expect(() => createHandler().on("", () => {})).toThrow("no known type");
    expect(() => createHandler().onOther("", () => {})).toThrow("not empty");
    // @ts-expect-error -- JavaScript callers
    expect(() => createHandler().on(buyer, "handler")).toThrow(TypeError);
    // @ts-expect-error -- JavaScript callers
    expect(() => createHandler().onAny()).toThrow(TypeError);
    const used = createHandler();
    await used.handle(envelope());
    expect(() => used.onAny(() => {})).toThrow("before the first webhook");
  });
});

describe("a malformed event", () => {
  test("is given up alone, in its place, with an alarm for each content", async () => {
    const notices = collectNotices();
    const failures: unknown[] = [];
    const handler = createHandler({ onError: (failure) => failures.push(failure) }).on(buyer, () => {});
    const other = { ...badEvent("x"), data: { buyer_id: 6 } };
    const received = envelope(badEvent("x"), "a", other, badEvent("z"), "b", badEvent("x"));
    const { acknowledged, events } = await handler.handle(received);
    expect(acknowledged).toBe(true);
    expect(events.map(({ event_id, outcome }) => `${event_id} ${outcome}`)).toEqual([
      "x dead-lettered",
      "a done",
      "x dead-lettered",
      "z dead-lettered",
      "b done",
      "x duplicate",
    ]);
    expect(failures).toHaveLength(3);
    expect(failures[0]).toMatchObject({
      webhookId: "wh_1",
      event_id: "x",
      event: undefined,
      invalid: received.invalid[0],
      attempt: 1,
      outcome: "dead-lettered",
      error: { code: "data-invalid", message: received.invalid[0]?.detail },
    });
    expect(notices.map(({ code }) => code)).toEqual(Array(3).fill("event-malformed"));
    expect(notices[0]?.message).toMatch(
      /^key "webhook-event:x\\u0009malformed-.*: \/events\/0\/data\/buyer_id must/,
    );
  });

  test("is a process warning where nobody subscribes, and no second line of the event", async () => {
    expectWarning(/^\[event-malformed\] .* was acknowledged and not handled: \/events\/0\/data\/buyer_id/);
    const handler = createHandler({ onError: undefined }).on(buyer, () => {});
    expect(await handleAll(handler, badEvent("x"))).toEqual(["dead-lettered"]);
  });

  test("is given up where the app hands over fewer of the valid events", async () => {
    collectNotices();
    const received = envelope("a", "b", badEvent("x"), "c", badEvent("y"));
    const handler = createHandler().on(buyer, () => {});
    const outcome = await handler.handle({ ...received, events: received.events.slice(0, 1) });
    expect(outcomes(outcome)).toEqual(["done", "dead-lettered", "dead-lettered"]);
  });

  test("never reaches a handler, and becomes a dead letter at its first delivery, once", async () => {
    const notices = collectNotices();
    const letters: unknown[] = [];
    const fallback = jest.fn();
    const handler = createHandler({
      fallback,
      maxAttempts: 2,
      onDeadLetter: (failure) => void letters.push(failure),
    }).onAny(fallback);
    const bad = badEvent("x");
    expect(await handleAll(handler, bad)).toEqual(["dead-lettered"]);
    expect(await handleAll(handler, bad)).toEqual(["duplicate"]);
    expect(letters).toMatchObject([
      { event_id: "x", attempt: 1, outcome: "dead-lettered", event: undefined },
    ]);
    expect(fallback).not.toHaveBeenCalled();
    expect(notices).toEqual([]);
  });

  test("comes again until onDeadLetter has kept it", async () => {
    const notices = collectNotices();
    let calls = 0;
    const handler = createHandler({
      maxAttempts: 2,
      onDeadLetter() {
        calls += 1;
        if (calls < 4) throw new Error("disk full");
      },
    });
    const told: unknown[] = [];
    // oxlint-disable-next-line no-await-in-loop -- one delivery after the other
    for (let delivery = 1; delivery <= 5; delivery += 1)
      told.push(...(await handleAll(handler, badEvent("x"))));
    expect(told).toEqual(["failed", "failed", "failed", "dead-lettered", "duplicate"]);
    expect(notices.map(({ code }) => code)).toEqual(Array(3).fill("dead-letter-failed"));
  });

  test("leaves its id to an event that is sent again as it should be", async () => {
    const ran: string[] = [];
    const handler = createHandler({ maxAttempts: 1, onDeadLetter: () => {} }).on(buyer, ({ event_id }) => {
      ran.push(event_id);
    });
    expect(await handleAll(handler, badEvent("x"), "x")).toEqual(["dead-lettered", "done"]);
    expect(await handleAll(handler, "x", badEvent("x"))).toEqual(["duplicate", "duplicate"]);
    expect(ran).toEqual(["x"]);
  });

  test("without an id is told apart by its content", async () => {
    collectNotices();
    const handler = createHandler().on(buyer, () => {});
    const unnamed = (note: number): WireEvent => ({ ...wireEvent(""), note }) as WireEvent;
    const told = await handleAll(handler, unnamed(1), "a", unnamed(2), unnamed(1));
    expect(told).toEqual(["dead-lettered", "done", "dead-lettered", "duplicate"]);
  });
});
