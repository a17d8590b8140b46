import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, describe, expect, jest, test } from "@jest/globals";
import {
  createDeliveryService,
  type DeliveryOptions,
  type DeliveryService,
  type ServiceEvent,
} from "@countersign/sandbox";
import Database from "libsql";
import {
  credentials,
  DeliveryBench,
  event,
  FakeTime,
  registration,
  type ReceivedWebhook,
} from "./delivery-bench.ts";
import { selfSignedCertificate } from "./self-signed.ts";

const bench = new DeliveryBench();
afterEach(() => bench.close());

const quick = { initialDelayMs: 5, maxDelayMs: 10, stopWaitMs: 1000 } as const satisfies DeliveryOptions;

function idsOf(received: readonly ReceivedWebhook[]): string[] {
  return received.map(({ eventIds }) => eventIds.join("+"));
}

function idsIn(service: DeliveryService): string[] {
  return service.list().map(({ eventIds }) => eventIds.join("+"));
}

describe("endpoints", () => {
  test("each gets every notification with its own credentials", async () => {
    const [first, second] = [await bench.receiver(), await bench.receiver()];
    const service = bench.service({ options: quick });
    const other = { username: "other", password: "other-password", secret: "other-secret" };
    service.addEndpoint(registration(first.url));
    service.addEndpoint(registration(second.url, other));
    service.start();
    service.notify([event("e1"), event("e2")]);
    await service.idle();
    expect(idsOf(first.received)).toEqual(["e1+e2"]);
    expect(second.received[0]?.body).toEqual(first.received[0]?.body);
    expect(first.received[0]?.credentials).toBe("service:test-password");
    expect(second.received[0]?.credentials).toBe("other:other-password");
    expect(first.received[0]?.signedBy("test-secret")).toBe(true);
    expect(second.received[0]?.signedBy("other-secret")).toBe(true);
  });

  test("are listed without credentials, in the order of their registration", () => {
    const service = bench.service();
    const added = ["https://a.example/x", "https://b.example/y"].map((url) =>
      service.addEndpoint(registration(url)),
    );
    expect(service.endpoints()).toEqual(added);
    expect(added.map(({ url }) => url)).toEqual(["https://a.example/x", "https://b.example/y"]);
    expect(JSON.stringify(added)).not.toContain("test-");
  });

  test("get nothing of what happened before them", async () => {
    const receiver = await bench.receiver();
    const service = bench.service();
    service.start();
    service.notify([event("before")]);
    service.addEndpoint(registration(receiver.url));
    service.notify([event("after")]);
    await service.idle();
    expect(idsOf(receiver.received)).toEqual(["after"]);
  });

  test.each<[string, Parameters<typeof registration>, RegExp]>([
    ["plain http", ["http://h/", { allowHttp: false }], /must be https/],
    ["plain http by default", ["http://h/", { allowHttp: undefined }], /must be https/],
    ["no URL", ["h/x"], /the URL must be/],
    ["an empty secret", ["https://h/", { secret: "" }], /secret must not be empty/],
    ["a colon in the username", ["https://h/", { username: "test:x" }], /colon/],
  ])("are refused with %s", (_name, args, message) => {
    const service = bench.service();
    expect(() => service.addEndpoint(registration(...args))).toThrow(message);
    expect(() => service.addEndpoint(registration(...args))).toThrow(TypeError);
    expect(service.endpoints()).toEqual([]);
  });

  test("that are slow or refuse hold up no other endpoint and no other webhook", async () => {
    let release = (): void => {};
    const hanging = new Promise<void>((resolve) => (release = resolve));
    const slow = await bench.receiver(async ({ eventIds }) => {
      if (eventIds.includes("stuck")) await hanging;
      return 200;
    });
    const good = await bench.receiver();
    const refusing = await bench.receiver(({ eventIds }) => (eventIds.includes("stuck") ? 500 : 200));
    const service = bench.service({
      options: { ...quick, concurrency: 2, initialDelayMs: 60_000, maxDelayMs: 60_000 },
    });
    for (const { url } of [slow, good, refusing]) service.addEndpoint(registration(url));
    service.start();
    const ids = ["stuck", "e1", "e2", "e3", "e4"];
    for (const id of ids) service.notify([event(id)]);
    while ([slow, good, refusing].some(({ received }) => received.length < ids.length)) {
      // oxlint-disable-next-line no-await-in-loop -- until all have arrived
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
    expect(service.list({ eventId: "stuck" }).map(({ state }) => state)).toEqual([
      "pending",
      "delivered",
      "pending",
    ]);
    release();
  });

  test("are reached by https with the issuer in ca", async () => {
    const tls = selfSignedCertificate();
    const receiver = await bench.receiver(undefined, tls);
    const states = await Promise.all(
      [tls.cert, undefined].map(async (ca) => {
        const service = bench.service({ ca, options: { ...quick, retryForMs: 0 } });
        service.addEndpoint(registration(receiver.url, { allowHttp: false }));
        service.start();
        service.notify([event("e1")]);
        await service.idle();
        return service.list()[0];
      }),
    );
    expect(states).toMatchObject([
      { state: "delivered", attempts: [{ status: 200 }] },
      { state: "failed", attempts: [{ error: "certificate-rejected" }] },
    ]);
  });

  test.each([
    [200, "delivered"],
    [201, "delivered"],
    [299, "delivered"],
    [300, "failed"],
    [308, "failed"],
    [404, "failed"],
    [503, "failed"],
  ])("that answer %d leave a webhook %s", async (status, state) => {
    const receiver = await bench.receiver(() => status);
    const service = bench.service({ options: { ...quick, retryForMs: 0 } });
    service.addEndpoint(registration(receiver.url));
    service.start();
    service.notify([event("e1")]);
    await service.idle();
    expect(service.list()).toMatchObject([{ state, attempts: [{ status }] }]);
  });

  test("get at most so many requests at the same time", async () => {
    const receiver = await bench.receiver(() => new Promise((resolve) => setTimeout(() => resolve(200), 5)));
    const service = bench.service({ options: { ...quick, concurrency: 3 } });
    service.addEndpoint(registration(receiver.url));
    service.start();
    for (let index = 0; index < 12; index += 1) service.notify([event(`e${index}`)]);
    await service.idle();
    expect(receiver.received).toHaveLength(12);
    expect(receiver.mostAtOnce()).toBe(3);
  });
});

describe("notify", () => {
  test("is undone with the transaction of its caller, and is one with it", async () => {
    const receiver = await bench.receiver();
    const database = bench.database();
    database.exec("CREATE TABLE buyers (id TEXT)");
    const service = bench.service({ database });
    service.addEndpoint(registration(receiver.url));
    service.start();
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
    const service = bench.service({ clock: () => 1_700_000_000_000 });
    service.addEndpoint(registration(receiver.url));
    service.start();
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
    const service = bench.service();
    service.addEndpoint(registration(receiver.url));
    service.start();
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
    const service = bench.service({ ...time.init, options: { concurrency: 1, ...options } });
    service.addEndpoint(registration(receiver.url));
    service.start();
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
    const before = bench.service({ database, options: { batchMs: 60_000 } });
    before.addEndpoint(registration(receiver.url));
    before.start();
    before.notify([event("e1")]);
    await before.stop();
    const after = bench.service({ database });
    after.start();
    await after.idle();
    expect(idsOf(receiver.received)).toEqual(["e1"]);
  });
});

describe("trouble on purpose", () => {
  const deliver = async (
    options: DeliveryOptions,
    count: number,
    respond: (index: number) => number = () => 200,
  ): Promise<readonly [ids: string[], service: DeliveryService]> => {
    const receiver = await bench.receiver((_webhook, index) => respond(index));
    const time = new FakeTime();
    const service = bench.service({ ...time.init, options: { concurrency: 1, ...options } });
    service.addEndpoint(registration(receiver.url));
    service.start();
    for (let index = 1; index <= count; index += 1) service.notify([event(`e${index}`)]);
    await time.runUntilIdle(service);
    return [idsOf(receiver.received), service];
  };

  test("duplicate sends what was delivered once more, and the answer to that changes nothing", async () => {
    const [ids, service] = await deliver({ duplicate: true }, 1, (index) => (index === 0 ? 200 : 500));
    expect(ids).toEqual(["e1", "e1"]);
    expect(service.list()).toMatchObject([
      { state: "delivered", attempts: [{ status: 200 }, { status: 500 }] },
    ]);
    const [first, second] = service.list()[0]?.attempts ?? [];
    expect((second?.at ?? 0) - (first?.at ?? 0)).toBe(1000);
  });

  test("duplicate takes a chance", async () => {
    let seed = 1;
    const random = (): number => {
      seed = (seed * 48_271) % 2_147_483_647;
      return seed / 2_147_483_647;
    };
    const [ids] = await deliver({ duplicate: 0.5, random }, 20);
    expect(ids.length).toBeGreaterThan(22);
    expect(ids.length).toBeLessThan(38);
  });

  test("reorder lets each second webhook overtake the one before it", async () => {
    const [ids] = await deliver({ reorder: true }, 4);
    expect(ids).toEqual(["e2", "e4", "e1", "e3"]);
  });

  test("reorder sends a webhook that nobody follows", async () => {
    const [ids] = await deliver({ reorder: true }, 1);
    expect(ids).toEqual(["e1"]);
  });

  test("twiceAtOnce sends two requests, and one 2xx of them delivers", async () => {
    const [ids, service] = await deliver({ twiceAtOnce: true }, 1, (index) => (index === 0 ? 503 : 200));
    expect(ids).toEqual(["e1", "e1"]);
    const [delivery] = service.list();
    expect(delivery?.state).toBe("delivered");
    expect(new Set(delivery?.attempts.map(({ status }) => status))).toEqual(new Set([200, 503]));
  });

  test("twiceAtOnce has both requests open at the same time", async () => {
    let waiting: (() => void) | undefined;
    const receiver = await bench.receiver(async () => {
      if (waiting === undefined) await new Promise<void>((resolve) => (waiting = resolve));
      else waiting();
      return 200;
    });
    const service = bench.service({ options: { ...quick, twiceAtOnce: true } });
    service.addEndpoint(registration(receiver.url));
    service.start();
    service.notify([event("e1")]);
    await service.idle();
    expect(receiver.received).toHaveLength(2);
  });

  test("dropConnection loses the first answer, and the retry delivers", async () => {
    const [ids, service] = await deliver({ dropConnection: true }, 2);
    expect(ids).toEqual(["e1", "e2", "e1", "e2"]);
    expect(service.list()).toMatchObject([
      { state: "delivered", attempts: [{ error: "connection-lost" }, { status: 200 }] },
      { state: "delivered", attempts: [{ error: "connection-lost" }, { status: 200 }] },
    ]);
  });

  test("is off by default", async () => {
    const [ids] = await deliver({ random: () => 0 }, 3);
    expect(ids).toEqual(["e1", "e2", "e3"]);
  });
});

describe("stop and start", () => {
  test("a request that a process left under way is sent again by the next one", async () => {
    const directory = mkdtempSync(join(tmpdir(), "countersign-delivery-"));
    const file = join(directory, "sandbox.db");
    try {
      const receiver = await bench.receiver((_webhook, index) => (index === 0 ? undefined : 200));
      const first = new Database(file);
      const dying = createDeliveryService({ database: first, options: { stopWaitMs: 0 } });
      dying.addEndpoint(registration(receiver.url));
      dying.start();
      dying.notify([event("e1")]);
      while (receiver.received.length === 0) await new Promise((resolve) => setTimeout(resolve, 5));
      dying.start();
      await dying.stop();
      expect(dying.list()).toMatchObject([{ state: "pending", attempts: [] }]);
      first.close();
      const second = new Database(file);
      const service = createDeliveryService({ database: second });
      service.start();
      await service.idle();
      expect(service.list()).toMatchObject([{ state: "delivered", attempts: [{ status: 200 }] }]);
      expect(receiver.received[1]?.body).toEqual(receiver.received[0]?.body);
      await service.stop();
      second.close();
    } finally {
      rmSync(directory, { recursive: true });
    }
  });

  test("what became due while nothing ran gets its attempt, even after the day", async () => {
    const receiver = await bench.receiver((_webhook, index) => (index === 0 ? 500 : 200));
    const database = bench.database();
    const time = new FakeTime();
    const before = bench.service({ ...time.init, database });
    before.addEndpoint(registration(receiver.url));
    before.start();
    before.notify([event("e1")]);
    time.letGo();
    await time.armed();
    await before.stop();
    time.nowMs += 10 * 86_400_000;
    const after = bench.service({ ...time.init, database });
    after.start();
    await time.runUntilIdle(after);
    expect(after.list()).toMatchObject([
      { state: "delivered", attempts: [{ status: 500 }, { status: 200 }] },
    ]);
  });

  test("stop waits for the answer of a request under way and writes it down", async () => {
    let answer = (): void => {};
    const arrived = new Promise<void>((resolve) => {
      answer = resolve;
    });
    const receiver = await bench.receiver(async () => {
      answer();
      await new Promise((resolve) => setTimeout(resolve, 20));
      return 200;
    });
    const service = bench.service();
    service.addEndpoint(registration(receiver.url));
    service.start();
    service.notify([event("e1")]);
    await arrived;
    await service.stop();
    expect(service.list()).toMatchObject([{ state: "delivered", attempts: [{ status: 200 }] }]);
  });

  test("nothing is sent before start and after stop", async () => {
    const receiver = await bench.receiver();
    const service = bench.service();
    service.addEndpoint(registration(receiver.url));
    service.notify([event("e1")]);
    await new Promise((resolve) => setTimeout(resolve, 20));
    expect(receiver.received).toEqual([]);
    service.start();
    service.start();
    await service.idle();
    await service.stop();
    service.notify([event("e2")]);
    await new Promise((resolve) => setTimeout(resolve, 20));
    expect(idsOf(receiver.received)).toEqual(["e1"]);
    expect(idsIn(service)).toEqual(["e1", "e2"]);
  });

  test("idle rejects when the service stops before", async () => {
    const receiver = await bench.receiver(() => 500);
    const service = bench.service();
    service.addEndpoint(registration(receiver.url));
    service.start();
    service.notify([event("e1")]);
    const idle = service.idle().catch((error: unknown) => error);
    await service.stop();
    expect(await idle).toEqual(new Error("the service stopped with webhooks left to send"));
  });

  test("idle resolves at once when there is nothing to do, running or not", async () => {
    const service = bench.service();
    await service.idle();
    service.start();
    await service.idle();
    await service.stop();
    await service.stop();
    await service.idle();
  });

  test("a database that fails makes a pause, not an end", async () => {
    const warned = jest.spyOn(process, "emitWarning").mockImplementation(() => {});
    const receiver = await bench.receiver();
    const time = new FakeTime();
    const database = bench.database();
    const service = bench.service({ ...time.init, database });
    service.addEndpoint(registration(receiver.url));
    service.start();
    service.notify([event("e1")]);
    database.exec("ALTER TABLE webhook_attempts RENAME TO gone");
    time.letGo();
    await time.armed();
    expect(time.delayMs).toBe(1000);
    const [message, name] = warned.mock.calls[0] ?? [];
    expect([message, name]).toEqual([expect.stringContaining("webhook_attempts"), "CountersignWarning"]);
    expect(message).not.toContain(credentials.secret);
    database.exec("ALTER TABLE webhook_deliveries RENAME TO hidden");
    time.letGo();
    expect(time.delayMs).toBe(1000);
    database.exec("ALTER TABLE hidden RENAME TO webhook_deliveries");
    database.exec("ALTER TABLE gone RENAME TO webhook_attempts");
    warned.mockRestore();
    await time.runUntilIdle(service);
    expect(service.list()).toMatchObject([{ state: "delivered", attempts: [{ status: 200 }] }]);
    expect(receiver.received).toHaveLength(2);
  });
});

describe("list", () => {
  const filled = async (): Promise<DeliveryService> => {
    const receiver = await bench.receiver(({ eventIds }) => (eventIds.includes("bad") ? 500 : 200));
    const time = new FakeTime();
    const service = bench.service({ ...time.init, options: { retryForMs: 0, concurrency: 1 } });
    service.addEndpoint(registration(receiver.url));
    service.start();
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

describe("createDeliveryService", () => {
  test.each<[string, object, RegExp]>([
    ["an unknown option", { options: { retries: 3 } }, /unknown option retries/],
    ["a speed of none", { speed: 0 }, /option speed must be a number above 0, got 0/],
    ["a speed without end", { speed: Infinity }, /option speed/],
    ["a fraction of a millisecond", { options: { batchMs: 0.5 } }, /option batchMs must be an integer/],
    ["a negative period", { options: { retryForMs: -1 } }, /option retryForMs/],
    ["no parallel request", { options: { concurrency: 0 } }, /option concurrency/],
    ["a time-out beyond timers", { options: { timeoutMs: 2 ** 31 } }, /option timeoutMs/],
    [
      "a longest delay below the first",
      { options: { maxDelayMs: 10 } },
      /option maxDelayMs must be at least/,
    ],
    ["a chance above one", { options: { duplicate: 2 } }, /option duplicate must be a boolean or a number/],
    ["a chance that is no number", { options: { reorder: Number.NaN } }, /option reorder/],
    ["a flag that is none", { options: { twiceAtOnce: 1 } }, /option twiceAtOnce must be a boolean/],
    ["dice that are no function", { options: { random: 4 } }, /option random must be a function/],
  ])("refuses %s", (_name, init, message) => {
    const database = bench.database();
    expect(() => createDeliveryService({ database, ...init })).toThrow(message);
    expect(() => createDeliveryService({ database, ...init })).toThrow(TypeError);
  });
});
