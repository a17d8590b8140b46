import { describe, expect, jest, test } from "@jest/globals";
import { GuardError } from "@countersign/core";
import { withImmediateTransaction } from "@countersign/store-sqlite";
import {
  latestOnly,
  memoryLatestTimestamps,
  type BuyerStatusChanged,
  type CreateWebhookHandlerOptions,
} from "@countersign/webhooks";
import type { EventHandler, EventFailure } from "../../dist/events/webhook-handler-types.js";
import {
  collectNotices,
  createHandler,
  eventually,
  gate,
  handleAll,
  memoryStore,
  sleep,
  sqlite,
  storeKinds,
  wireEvent,
  type WireEvent,
} from "./event-kit.ts";

const buyer = "buyer.status_changed";
const key = (event: BuyerStatusChanged): string => event.data.buyer_id;

function at(event_id: string, nanoseconds: number): WireEvent {
  return wireEvent(event_id, { at: nanoseconds });
}

/** A handler that gives an event up at its first failure, with what became of the events. */
function observed(
  handle: EventHandler<BuyerStatusChanged>,
  options: Partial<CreateWebhookHandlerOptions> = {},
) {
  const letters: string[] = [];
  const failures: EventFailure[] = [];
  const handler = createHandler({
    timeoutMs: 25,
    maxAttempts: 1,
    onDeadLetter: ({ event_id }) => void letters.push(event_id),
    onError: (failure) => void failures.push(failure),
    ...options,
  }).on(buyer, handle);
  return { handler, letters, failures };
}

describe.each(storeKinds)(
  "an event that waits for its turn behind a hung one, in %s",
  (_name, createStore) => {
    test("is busy at every delivery, never a failure, and runs when its turn comes", async () => {
      const { promise, open } = gate();
      const seen: string[] = [];
      const handle = latestOnly<BuyerStatusChanged>({ key }, async ({ event_id }) => {
        if (event_id === "hung") await promise;
        seen.push(event_id);
      });
      const { handler, letters, failures } = observed(handle, { store: createStore() });
      expect(await handleAll(handler, at("hung", 1))).toEqual(["timed-out"]);
      for (let delivery = 1; delivery <= 3; delivery += 1) {
        // oxlint-disable-next-line no-await-in-loop -- one delivery after another
        expect(await handleAll(handler, at("waiting", 2))).toEqual(["busy"]);
      }
      expect(letters).toEqual([]);
      expect(failures.map(({ event_id, outcome }) => `${event_id} ${outcome}`)).toEqual(["hung timed-out"]);
      open();
      await eventually(() => seen.length === 1);
      expect(await handleAll(handler, at("waiting", 2))).toEqual(["done"]);
      expect(seen).toEqual(["hung", "waiting"]);
    });

    test("has not begun when its signal aborts, whatever it waits for", async () => {
      const { promise, open } = gate<string>();
      const { handler, letters, failures } = observed(
        async (_event, { waitFor, signal }) => {
          await waitFor(promise);
          signal.throwIfAborted();
        },
        { store: createStore() },
      );
      expect(await handleAll(handler, "a")).toEqual(["busy"]);
      open("a connection");
      await eventually(async () => (await handleAll(handler, "a")).join() === "done");
      expect(letters).toEqual([]);
      expect(failures).toEqual([]);
    });
  },
);

test("a webhook does not wait once more for each event behind the one that hangs", async () => {
  const { promise, open } = gate();
  const seen: string[] = [];
  const handle = latestOnly<BuyerStatusChanged>({ key }, async ({ event_id }) => {
    if (event_id === "hung") await promise;
    seen.push(event_id);
  });
  const { handler, letters } = observed(handle, { timeoutMs: 1_000 });
  const others = Array.from({ length: 50 }, (_, index) => at(`e${index}`, index + 2));
  // One wait each would take ten times as long as a test may.
  const [hung, ...behind] = await handleAll(handler, at("hung", 1), ...others);
  expect(hung).toBe("timed-out");
  expect(new Set(behind)).toEqual(new Set(["busy"]));
  open();
  await eventually(() => seen.length === 1);
  // Its turn is over with it: what comes now is not refused for its old time-out, nor when one waits for another.
  const slow = handleAll(handler, at("hung", 1), ...others);
  expect(new Set(await slow)).toEqual(new Set(["duplicate", "done"]));
  expect(letters).toEqual([]);
});

test("an event whose transaction could not be begun has not failed: it is unavailable, and not counted", async () => {
  const { handler, letters } = observed(() => {
    throw new GuardError({ status: 503, code: "transaction-not-begun", message: "no connection" });
  });
  for (const delivery of [1, 2, 3]) {
    expect([delivery, await handleAll(handler, "a")]).toEqual([delivery, ["unavailable"]]);
  }
  expect(letters).toEqual([]);
});

describe("waitFor()", () => {
  test("gives what it waited for", async () => {
    const got: unknown[] = [];
    const { handler } = observed(async (_event, { waitFor }) => got.push(await waitFor(Promise.resolve(5))));
    expect(await handleAll(handler, "a")).toEqual(["done"]);
    expect(got).toEqual([5]);
  });

  test("that fails leaves the event busy and uncounted, and tells onError why", async () => {
    const refused = new Error("too many connections");
    const { handler, letters, failures } = observed(async (_event, { waitFor }) => {
      await waitFor(Promise.reject(refused));
    });
    expect(await handleAll(handler, "a")).toEqual(["busy"]);
    expect(await handleAll(handler, "a")).toEqual(["busy"]);
    expect(letters).toEqual([]);
    expect(failures).toMatchObject([
      { attempt: 1, outcome: "busy", error: { code: "event-not-begun", status: 503, cause: refused } },
      { attempt: 1, outcome: "busy" },
    ]);
    expect(failures[0]?.error).toBeInstanceOf(GuardError);
  });

  test("that is over excuses nothing: what fails or hangs behind it has run", async () => {
    const { promise, fail } = gate();
    const { handler, letters } = observed(async (_event, { waitFor }) => {
      await waitFor(Promise.resolve());
      await promise;
    });
    expect(await handleAll(handler, "a")).toEqual(["timed-out"]);
    fail(new Error("no such buyer"));
    await eventually(() => letters.length === 1);
  });
});

test("an event that was given back while latestOnly still worked on it has lost its turn: it sets no time back", async () => {
  const { promise, open } = gate();
  const seen: string[] = [];
  const stale: string[] = [];
  const inTurn = latestOnly<BuyerStatusChanged>(
    { key, onStale: ({ event_id }) => void stale.push(event_id) },
    async ({ event_id }) => {
      if (event_id === "slow") await promise;
      seen.push(event_id);
    },
  );
  const impatient = Promise.reject(new Error("waited long enough"));
  const { handler } = observed(
    (event, context) => {
      const work = inTurn(event, context);
      return event.event_id === "slow" ? Promise.race([work, impatient]) : work;
    },
    { maxAttempts: 5 },
  );
  expect(await handleAll(handler, at("slow", 1))).toEqual(["failed"]);
  expect(await handleAll(handler, at("newer", 5))).toEqual(["done"]);
  open();
  await eventually(() => seen.length === 2);
  await sleep(5);
  expect(await handleAll(handler, at("between", 3))).toEqual(["done"]);
  expect([seen, stale]).toEqual([["newer", "slow"], ["between"]]);
});

describe("a handler that hangs beyond handlerTimeoutMs", () => {
  const short = { leaseMs: 1_000, storeTimeoutMs: 300, handlerTimeoutMs: 1_000 };

  test("loses its event under rerun: the next delivery runs it, and the late one can commit nothing", async () => {
    const notices = collectNotices();
    const { store } = sqlite();
    const { promise, open } = gate();
    const late: unknown[] = [];
    const runs: string[] = [];
    const { handler, letters } = observed(
      async (_event, { completeIn, signal }) => {
        runs.push("run");
        if (runs.length > 1) return;
        await promise;
        late.push(signal.aborted);
        await completeIn(undefined);
      },
      { ...short, store },
    );
    expect(await handleAll(handler, "a")).toEqual(["timed-out"]);
    expect(await handleAll(handler, "a")).toEqual(["busy"]);
    await eventually(() => notices.length === 1);
    // The lease of the hung run may still last.
    await eventually(async () => (await handleAll(handler, "a")).join() === "done");
    open();
    await eventually(() => late.length === 1);
    await sleep(5);
    expect(late).toEqual([true]);
    expect(runs).toHaveLength(2);
    expect(letters).toEqual([]);
    expect(notices.map(({ code }) => code)).toEqual(["handler-timeout"]);
    expect(await handleAll(handler, "a")).toEqual(["duplicate"]);
  });

  test("commits nothing once it is lost, also while nobody else has the event", async () => {
    const notices = collectNotices();
    const { store, database } = sqlite();
    database.exec("CREATE TABLE effects (event_id TEXT) STRICT");
    const insert = database.prepare("INSERT INTO effects VALUES (?)");
    const rows = (): number => database.prepare("SELECT * FROM effects").all().length;
    const { promise, open } = gate();
    const { handler, failures, letters } = observed(
      async ({ event_id }, { completeIn }) => {
        if (rows() === 0 && failures.length === 0) await promise;
        return withImmediateTransaction(database, (tx) => {
          insert.run(event_id);
          return completeIn(tx);
        });
      },
      // The lease lasts for some seconds more when the run is given up.
      { ...short, leaseMs: 6_000, store },
    );
    expect(await handleAll(handler, "a")).toEqual(["timed-out"]);
    await eventually(() => notices.length === 1);
    expect(store.read("webhook-event:a")).toMatchObject({ state: "run" });
    open();
    await eventually(() => failures.length === 2);
    expect(failures[1]).toMatchObject({ outcome: "busy", error: { code: "idempotency-lost" } });
    expect(rows()).toBe(0);
    expect(letters).toEqual([]);
    expect(await handleAll(handler, "a")).toEqual(["done"]);
    expect(rows()).toBe(1);
  });

  test("loses its event under hold to an operator, who decides", async () => {
    collectNotices();
    const store = memoryStore();
    let runs = 0;
    const { handler } = observed(() => ((runs += 1) === 1 ? new Promise(() => {}) : undefined), {
      ...short,
      recovery: "hold",
      store,
    });
    expect(await handleAll(handler, "a")).toEqual(["timed-out"]);
    await eventually(async () => {
      expect(await handleAll(handler, "a")).toEqual(["busy"]);
      return store.read("webhook-event:a")?.state === "held";
    });
    expect(runs).toBe(1);
    const held = store.read("webhook-event:a");
    if (held === undefined) throw new Error("the key must be held");
    store.resolve("webhook-event:a", "released", held);
    expect(await handleAll(handler, "a")).toEqual(["done"]);
  });

  test("loses its turn: newer events go on, and it neither commits nor sets the time back", async () => {
    collectNotices();
    const latest = memoryLatestTimestamps();
    const { promise, open } = gate();
    const seen: string[] = [];
    const stale = jest.fn();
    const handle = latestOnly<BuyerStatusChanged>(
      { key, latest, onStale: ({ event_id }) => stale(event_id) },
      async ({ event_id }) => {
        if (event_id === "hung") await promise;
        seen.push(event_id);
      },
    );
    const { handler } = observed(handle, { ...short, store: memoryStore(), maxAttempts: 5 });
    expect(await handleAll(handler, at("hung", 1))).toEqual(["timed-out"]);
    expect(await handleAll(handler, at("newer", 5))).toEqual(["busy"]);
    await eventually(async () => (await handleAll(handler, at("newer", 5))).join() === "done");
    expect(seen).toEqual(["newer"]);
    open();
    await eventually(() => seen.length === 2);
    await sleep(5);
    expect(await handleAll(handler, at("between", 3))).toEqual(["done"]);
    expect(stale).toHaveBeenCalledWith("between");
    expect(seen).toEqual(["newer", "hung"]);
  });

  test("that had to wait for its turn first loses it all the same", async () => {
    collectNotices();
    const seen: string[] = [];
    const first = gate();
    const handle = latestOnly<BuyerStatusChanged>({ key }, ({ event_id }) => {
      if (event_id === "first") return first.promise;
      if (event_id === "hung") return new Promise(() => {});
      return void seen.push(event_id);
    });
    const { handler } = observed(handle, { ...short, timeoutMs: 100, concurrency: 2, store: memoryStore() });
    const both = handleAll(handler, at("first", 1), at("hung", 2));
    await sleep(5);
    first.open();
    expect(await both).toEqual(["done", "timed-out"]);
    await eventually(async () => (await handleAll(handler, at("newer", 5))).join() === "done");
    expect(seen).toEqual(["newer"]);
  });

  test("that had to wait for its turn first gives it to who came meanwhile, and has more time", async () => {
    collectNotices();
    const first = gate();
    const latest = memoryLatestTimestamps();
    const handle = latestOnly<BuyerStatusChanged>({ key, latest }, ({ event_id }) => {
      if (event_id === "first") return first.promise;
      return event_id === "hung" ? new Promise(() => {}) : undefined;
    });
    const hasty = observed(handle, { ...short, timeoutMs: 900, concurrency: 2, store: memoryStore() });
    const patient = observed(handle, { timeoutMs: 10_000, store: memoryStore() });
    const both = handleAll(hasty.handler, at("first", 1), at("hung", 2));
    await sleep(5);
    const newer = handleAll(patient.handler, at("newer", 5));
    await sleep(5);
    first.open();
    expect(await both).toEqual(["done", "timed-out"]);
    expect(await newer).toEqual(["done"]);
  });

  test("that came to its turn only after that begins nothing, and keeps no newer event waiting", async () => {
    const notices = collectNotices();
    const { promise, open } = gate();
    const seen: string[] = [];
    const latest = latestOnly<BuyerStatusChanged>({ key }, async ({ event_id }) => {
      seen.push(event_id);
      if (event_id === "hung") await new Promise(() => {});
    });
    const { handler } = observed(
      async (event, context) => {
        if (event.event_id === "hung") await promise;
        return latest(event, context);
      },
      { ...short, store: memoryStore() },
    );
    expect(await handleAll(handler, at("hung", 1))).toEqual(["timed-out"]);
    await eventually(() => notices.length === 1);
    open();
    await sleep(5);
    expect(await handleAll(handler, at("newer", 5))).toEqual(["done"]);
    expect(seen).toEqual(["newer"]);
  });

  test.each([
    ["below a second", { handlerTimeoutMs: 999 }, "option handlerTimeoutMs"],
    ["below timeoutMs", { timeoutMs: 5_000, handlerTimeoutMs: 4_999 }, "at least timeoutMs (5000)"],
    ["under no known rule", { recovery: "again" }, 'option recovery must be "hold" or "rerun"'],
  ])("is an option that is refused %s", (_name, options, message) => {
    expect(() => createHandler(options as Partial<CreateWebhookHandlerOptions>)).toThrow(message);
  });

  test("has at least its timeoutMs by default", () => {
    expect(() => createHandler({ timeoutMs: 3_600_000 })).not.toThrow();
  });
});
