import { describe, expect, test } from "@jest/globals";
import {
  collectNotices,
  createHandler,
  eventually,
  faultyStore,
  handleAll,
  wireEvent,
  type Fault,
} from "./event-kit.ts";

const buyer = "buyer.status_changed";

function setUp(asynchronous: boolean) {
  const notices = collectNotices();
  const store = faultyStore({ asynchronous });
  const runs: string[] = [];
  const failures: unknown[] = [];
  const options = { store, storeTimeoutMs: 50, leaseMs: 1_000 };
  const handler = createHandler({
    ...options,
    onError: ({ event_id, outcome }) => failures.push(`${event_id} ${outcome}`),
  }).on(buyer, ({ event_id }) => void runs.push(event_id));
  const counting = createHandler({ ...options, maxAttempts: 2, onDeadLetter: () => {} });
  return { store, runs, failures, handler, counting, codes: () => notices.map(({ code }) => code) };
}

const faults: [boolean, Fault][] = [
  [false, "throws before"],
  [false, "throws after"],
  [true, "throws before"],
  [true, "throws after"],
  [true, "hangs before"],
  [true, "hangs after"],
];

describe.each(faults)("a store (asynchronous: %s) that %s the effect", (asynchronous, fault) => {
  test("at the claim: nothing runs, no event is asked for again, and none is left behind", async () => {
    const { store, runs, failures, handler } = setUp(asynchronous);
    store.fail("claim", fault);
    const events = ["a", "b", wireEvent("u", { type: "new" })];
    expect(await handleAll(handler, ...events)).toEqual(["unavailable", "unavailable", "unavailable"]);
    expect(store.calls.claim).toBe(1);
    expect(runs).toEqual([]);
    expect(failures).toEqual(["a unavailable"]);
    await eventually(async () => (await handleAll(handler, "a", "b")).join() === "done,done");
    expect(runs).toEqual(["a", "b"]);
  });

  test("at the count of the failures: the handler does not run", async () => {
    const { store, runs, counting } = setUp(asynchronous);
    counting.on(buyer, ({ event_id }) => void runs.push(event_id));
    store.fail("read", fault);
    expect(await handleAll(counting, "a", "b")).toEqual(["unavailable", "unavailable"]);
    expect(runs).toEqual([]);
    expect(await handleAll(counting, "a", "b")).toEqual(["done", "done"]);
  });

  test.each(["claim", "complete"] as const)(
    "when a failure is recorded, at %s: the event fails all the same and is repeated",
    async (method) => {
      const { store, counting } = setUp(asynchronous);
      let runs = 0;
      counting.on(buyer, () => {
        runs += 1;
        if (runs === 1) store.fail(method, fault);
        throw new Error("no such buyer");
      });
      expect(await handleAll(counting, "a")).toEqual(["failed"]);
      await eventually(async () => (await handleAll(counting, "a")).join() === "dead-lettered");
      // A failure that could not be counted is one more attempt.
      expect([2, 3]).toContain(runs);
    },
  );
});
