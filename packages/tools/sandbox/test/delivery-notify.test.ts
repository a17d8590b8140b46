import { afterEach, describe, expect, test } from "@jest/globals";
import type { DeliveryOptions } from "../src/index.ts";
import type { ServiceEvent } from "../src/delivery/envelope.ts";
import { DeliveryBench, event, FakeTime, registration, idsIn, idsOf } from "./delivery-bench.ts";

const bench = new DeliveryBench();
afterEach(() => bench.close());

describe("notify", () => {
  test("is undone with the transaction of its caller, and is one with it", async () => {
    const receiver = await bench.receiver();
    const database = bench.database();
    database.exec("CREATE TABLE buyers (id TEXT)");
    const service = bench.started(receiver, { database });
    const change = database.transaction((id: string, fails: boolean) => {
      database.prepare("INSERT INTO buyers VALUES (?)").run(id);
      service.notify([event(id)]);
      if (fails) throw new Error("rolled back");
    });
    expect(() => change.immediate("undone", true)).toThrow("rolled back");
    change.immediate("kept", false);
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

  test("does nothing without events", async () => {
    const service = bench.service();
    service.addEndpoint(registration("https://h/"));
    service.notify([]);
    await service.idle();
    expect(service.list()).toEqual([]);
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

  test("lets the caller say what happened when", async () => {
    const receiver = await bench.receiver();
    const service = bench.started(receiver);
    service.notify([{ ...event("e1"), epochNanoseconds: 1n }]);
    await service.idle();
    expect(String(receiver.received[0]?.body)).toContain('"timestamp":"1970-01-01T00:00:00.000000001Z"');
  });
});

describe("batches", () => {
  const batching = async (
    options: DeliveryOptions,
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
    const before = bench.started(receiver, { database, options: { batchMs: 60_000 } });
    before.notify([event("e1")]);
    await before.stop();
    const after = bench.service({ database });
    after.start();
    await after.idle();
    expect(idsOf(receiver.received)).toEqual(["e1"]);
  });
});
