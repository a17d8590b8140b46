import { describe, expect, jest, test } from "@jest/globals";
import {
  latestOnly,
  memoryLatestTimestamps,
  parseTimestamp,
  type BuyerStatusChanged,
  type EventContext,
} from "@countersign/webhooks";
import type { LatestTimestamps } from "../../dist/events/latest-only.js";
import type { WebhookTimestamp } from "../../dist/envelope/timestamp.js";
import {
  createHandler,
  envelope,
  gate,
  handleAll,
  setClock,
  sleep,
  wireEvent,
  type WireEvent,
} from "./event-kit.ts";

const buyer = "buyer.status_changed";
const key = (event: BuyerStatusChanged): string => event.data.buyer_id;

function statusEvent(event_id: string, at: number, buyer_id = "b1"): WireEvent {
  return wireEvent(event_id, { at, data: { buyer_id, old_status: "PENDING", new_status: "ACTIVE" } });
}

type Latest = Parameters<typeof latestOnly<BuyerStatusChanged>>;

/** A handler of buyers' events that go through latestOnly(). */
function latestHandler(
  handle: Latest[1] = () => {},
  changes: Partial<Latest[0]> = {},
  options: Parameters<typeof createHandler>[0] = {},
): ReturnType<typeof createHandler> {
  return createHandler(options).on(buyer, latestOnly({ key, ...changes }, handle));
}

function asynchronousTimestamps(): LatestTimestamps {
  const inner = memoryLatestTimestamps();
  return {
    async get(of) {
      await sleep(1);
      return inner.get(of);
    },
    async set(of, timestamp) {
      await sleep(1);
      await inner.set(of, timestamp);
    },
  };
}

/** Times in a store that says null for what it does not have. */
function nullTimestamps(): LatestTimestamps {
  const inner = memoryLatestTimestamps();
  return {
    get: async (of) => (await inner.get(of)) ?? null,
    set: (of, timestamp) => inner.set(of, timestamp),
  };
}

describe.each([
  ["in memory", () => memoryLatestTimestamps()],
  ["of a database that says null", nullTimestamps],
  ["asynchronous", asynchronousTimestamps],
])("latestOnly, with times %s", (_name, createLatest) => {
  test("skips what is strictly older than the last of its key, by the nanosecond, and acknowledges it", async () => {
    const seen: string[] = [];
    const stale: [string, string][] = [];
    const handler = latestHandler(({ event_id }) => void seen.push(event_id), {
      latest: createLatest(),
      onStale: ({ event_id }, { webhookId }) => void stale.push([event_id, webhookId]),
    });
    const events = [
      statusEvent("new", 500),
      statusEvent("old", 499),
      statusEvent("same", 500),
      statusEvent("other", 1, "b2"),
      statusEvent("newer", 501),
    ];
    expect(await handleAll(handler, ...events)).toEqual(["done", "done", "done", "done", "done"]);
    expect(seen).toEqual(["new", "same", "other", "newer"]);
    expect(stale).toEqual([["old", "wh_1"]]);
  });

  test("does not skip what is older than an event that failed", async () => {
    const seen: string[] = [];
    let broken = true;
    const handle = async ({ event_id }: BuyerStatusChanged): Promise<void> => {
      await Promise.resolve();
      if (event_id === "new" && broken) throw new Error("no such buyer");
      seen.push(event_id);
    };
    const handler = latestHandler(handle, { latest: createLatest() });
    const events = [statusEvent("new", 2), statusEvent("old", 1)];
    expect(await handleAll(handler, ...events)).toEqual(["failed", "done"]);
    broken = false;
    expect(await handleAll(handler, ...events)).toEqual(["done", "duplicate"]);
    expect(seen).toEqual(["old", "new"]);
  });

  test("handles the events of a key one after another, and those of others meanwhile", async () => {
    const log: string[] = [];
    const { promise: otherEnded, open: endOther } = gate();
    const handle = async ({ event_id }: BuyerStatusChanged): Promise<void> => {
      log.push(`${event_id} begins`);
      await (event_id === "a1" ? otherEnded : sleep(4));
      log.push(`${event_id} ends`);
      if (event_id === "b1") endOther();
    };
    const handler = latestHandler(handle, { latest: createLatest() }, { concurrency: 9 });
    const events = [
      statusEvent("a1", 3),
      statusEvent("b1", 1, "b2"),
      statusEvent("a2", 4),
      statusEvent("a3", 2),
    ];
    expect(await handleAll(handler, ...events)).toEqual(["done", "done", "done", "done"]);
    expect(log).toEqual(["a1 begins", "b1 begins", "b1 ends", "a1 ends", "a2 begins", "a2 ends"]);
  });
});

describe("latestOnly", () => {
  test("is done when everything answers at once", async () => {
    setClock(0);
    const handler = latestHandler();
    const events = [statusEvent("a", 2), statusEvent("b", 1)];
    expect(await handler.handle(envelope(...events))).toMatchObject({ acknowledged: true });
  });

  test("repeats a stale event whose onStale fails", async () => {
    let broken = true;
    const onStale = (): void => {
      if (broken) throw new Error("log is full");
    };
    const handler = latestHandler(undefined, { onStale });
    expect(await handleAll(handler, statusEvent("a", 2), statusEvent("b", 1))).toEqual(["done", "failed"]);
    broken = false;
    expect(await handleAll(handler, statusEvent("b", 1))).toEqual(["done"]);
  });

  test("goes on after a handler that throws at once", async () => {
    const handler = latestHandler(({ event_id }) => {
      if (event_id === "a") throw new Error("no such buyer");
    });
    expect(await handleAll(handler, statusEvent("a", 1), statusEvent("b", 2))).toEqual(["failed", "done"]);
  });

  test("repeats an event whose time could not be kept", async () => {
    const latest: LatestTimestamps = {
      get: () => undefined,
      set: () => Promise.reject(new Error("engine down")),
    };
    const handler = latestHandler(undefined, { latest });
    expect(await handleAll(handler, statusEvent("a", 1))).toEqual(["failed"]);
  });

  test("takes turns with the other handlers on the same times", async () => {
    const latest = memoryLatestTimestamps();
    const { promise, open } = gate();
    const seen: string[] = [];
    const handle = async ({ event_id }: BuyerStatusChanged): Promise<void> => {
      if (event_id === "slow") await promise;
      seen.push(event_id);
    };
    const slow = handleAll(latestHandler(handle, { latest }), statusEvent("slow", 1));
    const quick = handleAll(latestHandler(handle, { latest }), statusEvent("quick", 2));
    await sleep(5);
    expect(seen).toEqual([]);
    open();
    expect(await Promise.all([slow, quick])).toEqual([["done"], ["done"]]);
    expect(seen).toEqual(["slow", "quick"]);
  });

  test("does not begin with a signal that has aborted before", async () => {
    const { promise, open } = gate();
    const handled: string[] = [];
    const handler = latestOnly<BuyerStatusChanged>({ key }, async ({ event_id }) => {
      await promise;
      handled.push(event_id);
    });
    const [first, second] = envelope(statusEvent("a", 1), statusEvent("b", 2)).events as BuyerStatusChanged[];
    const running = handler(first as BuyerStatusChanged, contextWith(new AbortController().signal));
    const aborted = AbortSignal.abort(new Error("too late"));
    await expect(handler(second as BuyerStatusChanged, contextWith(aborted))).rejects.toThrow("too late");
    open();
    await running;
    expect(handled).toEqual(["a"]);
  });

  test.each<[string, unknown]>([
    ["undefined", undefined],
    ["a number", 5],
    ["an empty string", ""],
  ])("fails an event whose key is %s", async (_name, wrong) => {
    const errors: unknown[] = [];
    const handled = jest.fn();
    const handler = createHandler({ onError: ({ error }) => errors.push(error) }).on(
      buyer,
      latestOnly({ key: () => wrong as string }, () => handled()),
    );
    expect(await handleAll(handler, "a")).toEqual(["failed"]);
    expect(errors).toMatchObject([{ message: expect.stringContaining("latestOnly: option key") }]);
    expect(handled).not.toHaveBeenCalled();
  });

  test.each<[string, unknown, unknown, string]>([
    ["no options", undefined, () => {}, "options must be an object"],
    ["no key", {}, () => {}, "option key"],
    ["a misspelt option", { key, stale: () => {} }, () => {}, "unknown option stale"],
    ["an onStale that is no function", { key, onStale: 5 }, () => {}, "option onStale"],
    ["times without get", { key, latest: { set: () => {} } }, () => {}, "option latest.get"],
    ["times without set", { key, latest: { get: () => {} } }, () => {}, "option latest.set"],
    ["times that are null", { key, latest: null }, () => {}, "option latest"],
    ["no handler", { key }, undefined, "option handler"],
  ])("refuses %s", (_name, options, handler, message) => {
    const create = (): unknown => latestOnly(options as { key: typeof key }, handler as () => void);
    expect(create).toThrow(TypeError);
    expect(create).toThrow(message);
  });
});

function contextWith(signal: AbortSignal): EventContext {
  return { webhookId: "wh_1", attempt: 1, signal, completeIn: () => {}, waitFor: async (pending) => pending };
}

describe("memoryLatestTimestamps", () => {
  test("forgets the key that was used least recently beyond max", async () => {
    const latest = memoryLatestTimestamps({ max: 2 });
    const timestamp: WebhookTimestamp = parseTimestamp("2024-01-02T03:04:05Z");
    await latest.set("a", timestamp);
    await latest.set("b", timestamp);
    await latest.get("a");
    await latest.set("c", timestamp);
    expect([await latest.get("a"), await latest.get("b"), await latest.get("c")]).toEqual([
      timestamp,
      undefined,
      timestamp,
    ]);
  });

  test("refuses a bad option", () => {
    expect(() => memoryLatestTimestamps({ max: 0 })).toThrow("memoryLatestTimestamps: option max");
    // @ts-expect-error -- a misspelt option
    expect(() => memoryLatestTimestamps({ maximum: 5 })).toThrow("unknown option maximum");
  });
});
