import { describe, expect, test } from "@jest/globals";
import type { CreateWebhookHandlerOptions, WebhookEventMap } from "countersign/webhooks";
import type { EventHandler, EventFailure } from "../../../dist/webhooks/events/webhook-handler-types.js";
import {
  collectNotices,
  createHandler,
  eventually,
  gate,
  handleAll,
  memoryStore,
  sleep,
  sqlite,
} from "./event-kit.ts";

const buyer = "buyer.status_changed";

/** A handler that gives an event up at its first failure, with what became of the events. */
function observed(
  handle: EventHandler<WebhookEventMap["buyer.status_changed"]>,
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

describe("a handler that hangs beyond handlerTimeoutMs", () => {
  const short = { leaseMs: 1_000, storeTimeoutMs: 300, handlerTimeoutMs: 1_000 };

  test("loses its event under rerun: the next delivery runs it, and the late one hears it", async () => {
    const notices = collectNotices();
    const { store } = sqlite();
    const { promise, open } = gate();
    const late: unknown[] = [];
    const runs: string[] = [];
    const { handler, letters } = observed(
      async (_event, { signal }) => {
        runs.push("run");
        if (runs.length > 1) return;
        await promise;
        late.push(signal.aborted);
        signal.throwIfAborted();
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

  test("begins no effect once its signal has aborted, also while nobody else has the event", async () => {
    const notices = collectNotices();
    const { store, database } = sqlite();
    database.exec("CREATE TABLE effects (event_id TEXT) STRICT");
    const insert = database.prepare("INSERT INTO effects VALUES (?)");
    const rows = (): number => database.prepare("SELECT * FROM effects").all().length;
    const { promise, open } = gate();
    const { handler, failures, letters } = observed(
      async ({ event_id }, { signal }) => {
        if (rows() === 0 && failures.length === 0) await promise;
        signal.throwIfAborted();
        insert.run(event_id);
      },
      // The lease lasts for some seconds more when the run is given up.
      { ...short, leaseMs: 6_000, store },
    );
    expect(await handleAll(handler, "a")).toEqual(["timed-out"]);
    await eventually(() => notices.length === 1);
    expect(store.read("webhook-event:a")).toMatchObject({ state: "running" });
    open();
    await eventually(() => failures.length === 2);
    expect(failures[1]).toMatchObject({ outcome: "busy", error: { code: "event-timed-out" } });
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

  test.each([
    ["that has overrun its time", { handlerTimeoutMs: 1_000, leaseMs: 6_000 }, () => {}],
    [
      "whose lease could not be renewed",
      { handlerTimeoutMs: 60_000, leaseMs: 1_000 },
      (store: ReturnType<typeof memoryStore>) => {
        store.heartbeat = () => {
          throw new Error("test: the store is away");
        };
      },
    ],
  ])(
    "has its event held under hold when it stops for its signal, as one %s: it may have had its effect",
    async (_name, times, prepare) => {
      const notices = collectNotices();
      const store = memoryStore();
      prepare(store);
      const effects: string[] = [];
      const { handler } = observed(
        async ({ event_id }, { signal }) => {
          effects.push(event_id);
          await eventually(() => notices.length === 1);
          signal.throwIfAborted();
        },
        { ...times, storeTimeoutMs: 300, recovery: "hold", store },
      );
      expect(await handleAll(handler, "a")).toEqual(["timed-out"]);
      await eventually(() => store.read("webhook-event:a")?.state === "held");
      expect(await handleAll(handler, "a")).toEqual(["busy"]);
      expect(effects).toEqual(["a"]);
    },
  );

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
