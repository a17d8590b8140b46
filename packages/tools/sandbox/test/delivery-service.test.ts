import { afterEach, describe, expect, test } from "@jest/globals";
import type { DeliveryService } from "../src/delivery/delivery-service.ts";
import { DeliveryBench, event, FakeTime } from "./delivery-bench.ts";

const bench = new DeliveryBench();
afterEach(() => bench.close());

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
    ["an unknown event", { eventId: "nobody" }, []],
    ["both", { state: "delivered", eventId: "bad" }, []],
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
    ["a negative period", { retryForMs: -1 }, /option delivery.retryForMs/],
    ["no parallel request", { concurrency: 0 }, /option delivery.concurrency/],
    ["a time-out beyond timers", { timeoutMs: 2 ** 31 }, /option delivery.timeoutMs/],
    ["a longest delay below the first", { maxDelayMs: 10 }, /option delivery.maxDelayMs must be at least/],
    ["a chance above one", { duplicate: 2 }, /option delivery.duplicate must be a boolean or a number/],
    ["a chance as text", { dropConnection: "0.5" }, /option delivery.dropConnection/],
    ["a chance that is no number", { reorder: Number.NaN }, /option delivery.reorder/],
    ["a flag that is none", { twiceAtOnce: 1 }, /option delivery.twiceAtOnce must be true or false/],
    ["dice that are no function", { random: 4 }, /option delivery.random must be a function/],
  ])("refuses %s", (_name, options, message) => {
    expect(() => bench.service({ options })).toThrow(message);
    expect(() => bench.service({ options })).toThrow(TypeError);
  });
});
