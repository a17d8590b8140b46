import { describe, expect, test } from "@jest/globals";
import type { SandboxOptions } from "../../src/sandbox/service/options.ts";
import type { ServiceEvent } from "../../src/sandbox/delivery/envelope.ts";
import { bench, event, FakeTime, registration, idsIn, idsOf } from "./delivery-bench.ts";
import type { DeliveryService } from "../../src/sandbox/delivery/delivery-service.ts";
import { DocumentStore } from "../../src/sandbox/documents.ts";

describe("notify", () => {
  test("is undone with the transaction of its caller, and is one with it", async () => {
    const receiver = await bench.receiver();
    const database = bench.database();
    const store = new DocumentStore(database);
    const service = bench.started(receiver, { store });
    const undone = () => {
      service.notify([event("undone")]);
      throw new Error("rolled back");
    };
    expect(() => store.atomically(undone)).toThrow("rolled back");
    expect(idsIn(bench.service({ store: new DocumentStore(database) }))).toEqual([]);
    store.atomically(() => service.notify([event("kept")]));
    await service.idle();
    expect(idsOf(receiver.received)).toEqual(["kept"]);
    expect(idsIn(service)).toEqual(["kept"]);
  });

  test("writes nothing when one of its events is wrong", () => {
    const service = bench.service();
    service.addEndpoint(registration("https://h/"));
    expect(() => service.notify([event("e1"), { ...event("e2"), type: "" }])).toThrow(TypeError);
    expect(() => service.notify([event("e1"), { ...event("e2"), data: { amount: 1n } }])).toThrow(TypeError);
    service.notify([event("e3")]);
    expect(idsIn(service)).toEqual(["e3"]);
  });

  test("gives later events later timestamps, and an envelope none before its events", async () => {
    const receiver = await bench.receiver();
    const service = bench.started(receiver, { clock: () => 1_700_000_000_000 });
    service.notify([event("e1"), event("e2")]);
    await service.idle();
    const { timestamp, events } = JSON.parse(String(receiver.received[0]?.body)) as {
      timestamp: string;
      events: { timestamp: string }[];
    };
    const times = [...events.map((one) => one.timestamp), timestamp];
    expect(times.every((time, index) => time > (times[index - 1] ?? ""))).toBe(true);
    expect(times).toHaveLength(3);
    expect(times.every((time) => /^2023-11-14T22:13:20\.\d{9}Z$/.test(time))).toBe(true);
  });
});

describe("batches", () => {
  const batching = async (
    options: NonNullable<SandboxOptions["delivery"]>,
    calls: readonly (readonly ServiceEvent[])[],
  ): Promise<string[]> => {
    const receiver = await bench.receiver();
    const time = new FakeTime();
    const service = bench.started(receiver, { ...time.init, options: { concurrency: 1, ...options } });
    for (const events of calls) service.notify(events);
    await time.runUntilIdle(service);
    return idsOf(receiver.received);
  };
  const events = (...ids: string[]): ServiceEvent[] => ids.map((id) => event(id));

  test("hold the events of one call by default", async () => {
    expect(await batching({}, [events("e1", "e2"), events("e3")])).toEqual(["e1+e2", "e3"]);
  });

  test("hold the events of all calls within batchMs", async () => {
    expect(await batching({ batchMs: 500 }, [events("e1", "e2"), events("e3")])).toEqual(["e1+e2+e3"]);
  });

  test("hold no more than maxEventsPerWebhook", async () => {
    const options = { maxEventsPerWebhook: 2 };
    const calls = [events("e1"), events("e2", "e3"), events("e4", "e5", "e6")];
    expect(await batching(options, calls)).toEqual(["e1", "e2+e3", "e4+e5", "e6"]);
    expect(await batching({ ...options, batchMs: 500 }, calls)).toEqual(["e1+e2", "e3+e4", "e5+e6"]);
  });

  test("wait for batchMs from the first event, divided by the speed", async () => {
    const time = new FakeTime();
    const service = bench.service({ ...time.init, speed: 10, options: { batchMs: 500 } });
    service.start();
    service.notify([event("e1")]);
    time.letGo();
    expect(time.delayMs).toBe(50);
    time.nowMs += 20;
    service.notify([event("e2")]);
    time.letGo();
    expect(time.delayMs).toBe(30);
    time.letGo();
    expect(time.delayMs).toBeUndefined();
    await service.idle();
  });

  test("that were left waiting are formed after a restart", async () => {
    const receiver = await bench.receiver();
    const database = bench.database();
    const store = new DocumentStore(database);
    const before = bench.started(receiver, { store, options: { batchMs: 60_000 } });
    before.notify([event("e1")]);
    await before.stop();
    const after = bench.service({ store: new DocumentStore(database) });
    after.start();
    await after.idle();
    expect(idsOf(receiver.received)).toEqual(["e1"]);
  });
});

describe("list", () => {
  const filled = async (): Promise<DeliveryService> => {
    const receiver = await bench.receiver(({ eventIds }) => (eventIds.includes("bad") ? 500 : 200));
    const time = new FakeTime();
    const service = bench.started(receiver, { ...time.init, options: { retryForMs: 0, concurrency: 1 } });
    for (const id of ["e1", "bad", "e3"]) service.notify([event(id, `type.${id}`), event("every")]);
    await time.runUntilIdle(service);
    await service.stop();
    service.notify([event("waiting")]);
    return service;
  };

  test("tells what was sent, oldest first, and what comes next", async () => {
    const service = await filled();
    const list = service.list();
    expect(list.map(({ state }) => state)).toEqual(["delivered", "failed", "delivered", "pending"]);
    expect(list[1]).toEqual({
      id: expect.any(Number),
      webhookId: expect.stringMatching(/^[0-9a-f-]{36}$/),
      endpointId: service.endpoints()[0]?.id,
      url: service.endpoints()[0]?.url,
      eventIds: ["bad", "every"],
      eventTypes: ["type.bad", "buyer.status_changed"],
      state: "failed",
      createdAt: 1_700_000_000_000,
      attempts: [{ at: 1_700_000_000_000, status: 500, durationMs: expect.any(Number) }],
    });
    expect(list[3]).toMatchObject({ nextAttemptAt: 1_700_000_000_000, attempts: [] });
    expect(JSON.stringify(list)).not.toContain("test-");
  });

  test.each<[string, Parameters<DeliveryService["list"]>[0], readonly string[]]>([
    ["a state", { state: "failed" }, ["bad+every"]],
    ["an event", { eventId: "e3" }, ["e3+every"]],
    ["an event of several webhooks", { eventId: "every" }, ["e1+every", "bad+every", "e3+every"]],
    ["a number, of the newest", { limit: 2 }, ["e3+every", "waiting"]],
  ])("is narrowed by %s", async (_name, filter, ids) => {
    const service = await filled();
    expect(service.list(filter).map(({ eventIds }) => eventIds.join("+"))).toEqual(ids);
  });

  test.each<[string, object, RegExp]>([
    ["an unknown state", { state: "lost" }, /state must be one of pending, delivered, failed/],
    ["a limit of none", { limit: 0 }, /limit must be an integer/],
    ["a limit that is no integer", { limit: 1.5 }, /limit must be an integer/],
  ])("refuses %s", (_name, filter, message) => {
    expect(() => bench.service().list(filter)).toThrow(message);
  });
});

describe("delivery options", () => {
  test.each<[string, object, RegExp]>([
    [
      "an unknown one",
      { retries: 3 },
      /startSandbox: unknown option delivery.retries; known options are batchMs,/,
    ],
    ["a fraction of a millisecond", { batchMs: 0.5 }, /option delivery.batchMs must be an integer/],
    ["a time-out beyond timers", { timeoutMs: 2 ** 31 }, /option delivery.timeoutMs/],
    ["a longest delay below the first", { maxDelayMs: 10 }, /option delivery.maxDelayMs must be at least/],
    ["a chance above one", { duplicate: 2 }, /option delivery.duplicate must be a boolean or a number/],
    ["a chance that is no number", { reorder: Number.NaN }, /option delivery.reorder/],
  ])("refuses %s", (_name, options, message) => {
    expect(() => bench.service({ options })).toThrow(message);
    expect(() => bench.service({ options })).toThrow(TypeError);
  });
});
