import { memoryIdempotencyStore } from "@countersign/idempotency";
import { describe, expect, jest, test } from "@jest/globals";
import {
  createWebhookHandler,
  type CreateWebhookHandlerOptions,
  type WebhookHandler,
} from "countersign/webhooks";
import type { EventFailure } from "../../../dist/webhooks/events/webhook-handler-types.js";
import {
  collectNotices,
  createHandler,
  eventually,
  failingWays,
  faultyStore,
  gate,
  handleAll,
  memoryStore,
  sleep,
  storeKinds,
  wireEvent,
} from "./event-kit.ts";

const buyer = "buyer.status_changed";
const broken = new Error("no such buyer");

test("drain() waits for the events that run, and begins none", async () => {
  const { promise, open } = gate();
  const handler = createHandler({ store: memoryStore() }).on(buyer, () => promise);
  const running = handleAll(handler, "a");
  const drained = handler.drain({ timeoutMs: 5_000 });
  expect(await handleAll(handler, "b")).toEqual(["unavailable"]);
  open();
  expect(await running).toEqual(["done"]);
  expect(await drained).toEqual({ keys: 0, claims: 0 });
});

test.each([
  ["hold", "held", "busy"],
  ["rerun", undefined, "failed"],
] as const)(
  "an event whose handler throws is held under hold, and free under rerun: %s",
  async (recovery, state, next) => {
    const store = memoryStore();
    let runs = 0;
    const handler = createHandler({ store, recovery }).on(buyer, () => {
      runs += 1;
      throw broken;
    });
    expect(await handleAll(handler, "a")).toEqual(["failed"]);
    expect(store.read("webhook-event:a")?.state).toBe(state);
    expect(await handleAll(handler, "a")).toEqual([next]);
    expect(runs).toBe(next === "busy" ? 1 : 2);
  },
);

describe.each(storeKinds)("maxAttempts with %s", (_name, createStore) => {
  test("gives an event up after so many failures, counted across handlers, and calls it done", async () => {
    const store = createStore();
    const attempts: number[] = [];
    const letters: EventFailure[] = [];
    const create = (): WebhookHandler =>
      createHandler({ store, maxAttempts: 3, onDeadLetter: (letter) => void letters.push(letter) }).on(
        buyer,
        ({ event_id }, { attempt }) => {
          if (event_id === "fine") return;
          attempts.push(attempt);
          throw broken;
        },
      );
    expect(await handleAll(create(), "a", "fine")).toEqual(["failed", "done"]);
    expect(await handleAll(create(), "a")).toEqual(["failed"]);
    expect(letters).toEqual([]);
    expect(await handleAll(create(), "a")).toEqual(["dead-lettered"]);
    expect(await handleAll(create(), "a")).toEqual(["duplicate"]);
    expect(attempts).toEqual([1, 2, 3]);
    expect(letters).toMatchObject([
      { webhookId: "wh_1", event_id: "a", type: buyer, attempt: 3, outcome: "dead-lettered", error: broken },
    ]);
    expect(letters[0]?.event?.event_id).toBe("a");
  });

  test.each(failingWays("disk full"))(
    "repeats only the dead letter when onDeadLetter %s",
    async (_how, failing) => {
      const notices = collectNotices();
      let runs = 0;
      const letters: EventFailure[] = [];
      const handler = createHandler({
        store: createStore(),
        maxAttempts: 2,
        onDeadLetter: (letter) => {
          letters.push(letter);
          return letters.length < 3 ? failing() : sleep(1);
        },
      }).on(buyer, () => {
        runs += 1;
        throw broken;
      });
      expect(await handleAll(handler, "a")).toEqual(["failed"]);
      expect(await handleAll(handler, "a")).toEqual(["failed"]);
      expect(await handleAll(handler, "a")).toEqual(["failed"]);
      expect(await handleAll(handler, "a")).toEqual(["dead-lettered"]);
      expect(await handleAll(handler, "a")).toEqual(["duplicate"]);
      expect(runs).toBe(2);
      expect(letters.map(({ attempt }) => attempt)).toEqual([2, 3, 3]);
      expect(letters.map(({ error }) => error)).toMatchObject([
        broken,
        { code: "attempts-exhausted" },
        { code: "attempts-exhausted" },
      ]);
      expect(notices.map(({ code }) => code)).toEqual(["dead-letter-failed", "dead-letter-failed"]);
    },
  );

  test("counts each event by itself, also when its id looks like a count", async () => {
    const store = createStore();
    const ran: string[] = [];
    const handler = createHandler({ store, maxAttempts: 5, onDeadLetter: () => {} }).on(
      buyer,
      ({ event_id }) => {
        ran.push(event_id);
        if (event_id === "a") throw broken;
      },
    );
    const lookalikes = ["a/failure-1", "a failure-1", "afailure-1", "failure-1"];
    await handleAll(handler, "a");
    await handleAll(handler, ...lookalikes);
    expect(ran).toEqual(["a", ...lookalikes]);
  });
});

test("a failure after the time-out counts, and its dead letter makes the event done", async () => {
  const { promise, fail } = gate();
  const letters: EventFailure[] = [];
  const handler = createHandler({
    timeoutMs: 20,
    maxAttempts: 1,
    onDeadLetter: (letter) => void letters.push(letter),
  }).on(buyer, () => promise);
  expect(await handleAll(handler, "a")).toEqual(["timed-out"]);
  expect(letters).toEqual([]);
  fail(broken);
  await eventually(() => letters.length === 1);
  expect(await handleAll(handler, "a")).toEqual(["duplicate"]);
});

test("an onDeadLetter that never ends is answered after the time-out", async () => {
  const options = { timeoutMs: 20, maxAttempts: 1, onDeadLetter: () => new Promise(() => {}) };
  const handler = createHandler(options).on(buyer, () => {
    throw broken;
  });
  expect(await handleAll(handler, "a")).toEqual(["timed-out"]);
  expect(await handleAll(handler, "a")).toEqual(["busy"]);
});

test("attempts are not counted, nor read, without maxAttempts", async () => {
  const store = faultyStore();
  const attempts: number[] = [];
  const handler = createHandler({ store }).on(buyer, (_event, { attempt }) => {
    attempts.push(attempt);
    throw broken;
  });
  await handleAll(handler, "a");
  await handleAll(handler, "a");
  expect(attempts).toEqual([1, 1]);
  expect(store.calls).toMatchObject({ claim: 2, read: 0, complete: 0, release: 2 });
});

describe("onError", () => {
  test("hears of each failed attempt", async () => {
    const failures: EventFailure[] = [];
    const handler = createHandler({ onError: (failure) => void failures.push(failure) }).on(buyer, () => {
      throw broken;
    });
    await handleAll(handler, "a");
    expect(failures).toEqual([
      {
        webhookId: "wh_1",
        event_id: "a",
        type: buyer,
        event: expect.objectContaining({ event_id: "a" }),
        invalid: undefined,
        attempt: 1,
        outcome: "failed",
        error: broken,
      },
    ]);
  });

  test.each(failingWays("log is full"))(
    "that %s leaves the answer as it is and becomes a process warning",
    async (_how, onError) => {
      const warn = jest.spyOn(process, "emitWarning").mockReturnValue();
      const handler = createHandler({ onError }).on(buyer, ({ event_id }) => {
        if (event_id === "a") throw broken;
      });
      expect(await handleAll(handler, "a", "b")).toEqual(["failed", "done"]);
      await sleep(0);
      expect(warn.mock.calls).toEqual([
        [
          'createWebhookHandler: key "webhook-event:a" has an onError() that failed',
          { type: "CountersignWarning", code: "on-error-failed" },
        ],
      ]);
      warn.mockRestore();
    },
  );

  test("is a notice by default, and a line on stderr with the cause when nobody subscribes", async () => {
    const line = jest.spyOn(console, "error").mockReturnValue();
    delete process.env["COUNTERSIGN_STDERR"];
    try {
      const handler = createHandler({ onError: undefined }).on(buyer, () => {
        throw broken;
      });
      await handleAll(handler, "a");
      expect(line.mock.calls).toEqual([
        [
          'countersign: createWebhookHandler event-failed: "key \\"webhook-event:a\\" has a failed attempt, its outcome: failed": ' +
            `Error "${broken.message}"; see https://github.com/countersign/countersign/blob/main/site/pages/reference/codes.md#event-failed`,
        ],
      ]);
      const notices = collectNotices();
      await handleAll(handler, "a");
      expect(notices).toMatchObject([{ guard: "createWebhookHandler", code: "event-failed", error: broken }]);
      expect(line).toHaveBeenCalledTimes(1);
    } finally {
      process.env["COUNTERSIGN_STDERR"] = "off";
      line.mockRestore();
    }
  });
});

describe("createWebhookHandler", () => {
  const valid = { store: memoryStore(), fallback: "ignore" } as const;

  test.each<[string, Record<string, unknown>, string]>([
    ["no store", { store: undefined }, "option store"],
    ["a store without a method", { store: { ...faultyStore(), release: undefined } }, "store.release"],
    ["no fallback", { fallback: undefined }, "option fallback"],
    ["a fallback that is misspelt", { fallback: "ignored" }, "option fallback"],
    [
      "a store that forgets after a day",
      { store: { ...faultyStore(), retentionMs: 86_400_000 } },
      "259200000",
    ],
    ["a retention beyond that of the store", { retentionHours: 73 }, "262800000"],
    ["a retention under three days", { retentionHours: 71 }, "option retentionHours"],
    ["concurrency 0", { concurrency: 0 }, "option concurrency"],
    ["timeoutMs 0", { timeoutMs: 0 }, "option timeoutMs"],
    ["a lease that is too short", { leaseMs: 10 }, "option leaseMs"],
    ["a store's time-out over the lease", { leaseMs: 1_000, storeTimeoutMs: 1_000 }, "option storeTimeoutMs"],
    ["an empty keyPrefix", { keyPrefix: "" }, "option keyPrefix"],
    ["a keyPrefix with a control character", { keyPrefix: "a\tb" }, "option keyPrefix"],
    ["a keyPrefix that is too long", { keyPrefix: "a".repeat(129) }, "option keyPrefix"],
    ["a keyPrefix of 256 UTF-16 units", { keyPrefix: "\u{1f512}".repeat(128) }, "option keyPrefix"],
    ["a lone surrogate in keyPrefix", { keyPrefix: "a\ud800" }, "option keyPrefix"],
    ["maxAttempts without onDeadLetter", { maxAttempts: 3 }, "option onDeadLetter"],
    ["onDeadLetter without maxAttempts", { onDeadLetter: () => {} }, "option maxAttempts"],
    ["maxAttempts 0", { maxAttempts: 0, onDeadLetter: () => {} }, "option maxAttempts"],
    ["an onError that is no function", { onError: "log" }, "option onError"],
    ["an unknown option", { maxAttempt: 3 }, "unknown option maxAttempt"],
  ])("refuses %s", (_name, options, message) => {
    const create = (): unknown => createHandler({ ...valid, ...options });
    expect(create).toThrow(TypeError);
    expect(create).toThrow("createWebhookHandler: ");
    expect(create).toThrow(message);
  });

  test("takes memoryIdempotencyStore() by the defaults of both, and handles an event once within three days", async () => {
    let nowMs = 0;
    const handled: string[] = [];
    const store = memoryIdempotencyStore({ now: () => nowMs });
    const handler = createWebhookHandler({ store, fallback: ({ event_id: id }) => void handled.push(id) });
    const outcomesOf = async (): Promise<unknown> => handleAll(handler, "a");
    expect(await outcomesOf()).toEqual(["done"]);
    nowMs = 72 * 3_600_000 - 1;
    expect(await outcomesOf()).toEqual(["duplicate"]);
    expect(handled).toEqual(["a"]);
  });

  test("takes a store that does not know its retention", () => {
    for (const retentionMs of [undefined, null as never]) {
      expect(() => createHandler({ store: { ...faultyStore(), retentionMs } })).not.toThrow();
    }
  });

  test("refuses a store that another handler has under the same keyPrefix, unless both say so", () => {
    const store = memoryStore();
    const create = (more: Partial<CreateWebhookHandlerOptions> = {}): unknown =>
      createWebhookHandler({ store, fallback: "ignore", ...more });
    // One that was not made shares nothing.
    expect(() => create({ onError: "log" as never })).toThrow("option onError");
    create();
    const shared = /^createWebhookHandler: this store was given to another handler already.*keyPrefix/;
    expect(() => create()).toThrow(shared);
    expect(() => create({ keyPrefix: "webhook-event:" })).toThrow(shared);
    create({ keyPrefix: "endpoint-2:" });
    create({ keyPrefix: "endpoint-2:" });
  });

  test("begins the keys with keyPrefix", async () => {
    const store = memoryStore();
    const handler = createHandler({ store, keyPrefix: "endpoint-2:" }).on(buyer, () => {});
    await handleAll(handler, "a");
    expect(store.read("endpoint-2:a")).toMatchObject({ state: "done" });
    const other = createHandler({ store }).on(buyer, () => {});
    expect(await handleAll(other, wireEvent("a"))).toEqual(["done"]);
  });
});
