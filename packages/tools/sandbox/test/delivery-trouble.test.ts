import { afterEach, describe, expect, test } from "@jest/globals";
import type { DeliveryOptions } from "../src/index.ts";
import type { DeliveryService } from "../src/delivery/delivery-service.ts";
import { DeliveryBench, event, FakeTime, idsOf } from "./delivery-bench.ts";

const bench = new DeliveryBench();
afterEach(() => bench.close());

const quick = { initialDelayMs: 5, maxDelayMs: 10, stopWaitMs: 1000 } as const satisfies DeliveryOptions;

describe("resend", () => {
  test("begins a new retry period for what was given up, with the same bytes", async () => {
    let status = 503;
    const receiver = await bench.receiver(() => status);
    const time = new FakeTime();
    const service = bench.started(receiver, { ...time.init, options: { retryForMs: 2000 } });
    service.notify([event("e1")]);
    await time.runUntilIdle(service);
    expect(service.list()).toMatchObject([{ state: "failed" }]);
    const before = receiver.received.length;
    service.resend("1");
    await time.runUntilIdle(service);
    expect(receiver.received.length).toBeGreaterThan(before + 1);
    expect(service.list()).toMatchObject([{ state: "failed" }]);
    status = 200;
    expect(service.resend("e1")).toMatchObject([{ id: 1, state: "pending" }]);
    await time.runUntilIdle(service);
    expect(service.list()).toMatchObject([{ state: "delivered" }]);
    expect(new Set(receiver.received.map(({ body }) => body.toString())).size).toBe(1);
    expect(service.resend("e2")).toEqual([]);
  });
});

describe("onAttempt", () => {
  test("hears of each attempt, and its throw does no harm", async () => {
    const heard: string[] = [];
    const receiver = await bench.receiver((_webhook, index) => (index === 0 ? 503 : 200));
    const time = new FakeTime();
    const service = bench.started(receiver, {
      ...time.init,
      onAttempt: ({ state, attempts }) => {
        heard.push(`${state} ${attempts.length}`);
        throw new Error("not yours");
      },
    });
    service.notify([event("e1")]);
    await time.runUntilIdle(service);
    expect(heard).toEqual(["pending 1", "delivered 2"]);
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
    const service = bench.started(receiver, { ...time.init, options: { concurrency: 1, ...options } });
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
    const service = bench.started(receiver, { options: { ...quick, twiceAtOnce: true } });
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
