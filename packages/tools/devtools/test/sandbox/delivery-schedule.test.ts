import { describe, expect, test, jest } from "@jest/globals";
import { testFolder } from "@countersign/test-support/runs/after-test.ts";
import { eventually } from "@countersign/test-support/runs/eventually.ts";
import type { DeliveryAttempt } from "../../src/sandbox/delivery/delivery.ts";
import type { SandboxOptions } from "../../src/sandbox/service/options.ts";
import {
  bench,
  event,
  FakeTime,
  type Receiver,
  idsOf,
  credentials,
  registration,
  idsIn,
} from "./delivery-bench.ts";
import type { DeliveryService } from "../../src/sandbox/delivery/delivery-service.ts";
import { DocumentStore } from "../../src/sandbox/documents.ts";
import { join } from "node:path";
import Database from "libsql";
import { expectWarning } from "@countersign/test-support/runs/expect-warning.ts";

const dayMs = 86_400_000;
const hourMs = 3_600_000;

function delaysOf(attempts: readonly DeliveryAttempt[]): number[] {
  return attempts.slice(1).map(({ at }, index) => at - (attempts[index]?.at ?? 0));
}

async function dayOfRetries(
  receiver: Receiver,
  { speed, options }: { speed: number; options?: NonNullable<SandboxOptions["delivery"]> },
): Promise<readonly [state: string, attempts: readonly DeliveryAttempt[], createdAt: number]> {
  const time = new FakeTime();
  const service = bench.started(receiver, { ...time.init, speed, options });
  service.notify([event("e1")]);
  await time.runUntilIdle(service);
  const [delivery] = service.list();
  if (delivery === undefined) throw new Error("no delivery is listed");
  expect(delivery.nextAttemptAt).toBeUndefined();
  return [delivery.state, delivery.attempts, delivery.createdAt];
}

describe("a day of retries", () => {
  test("doubles its delays up to an hour, gives up within the day and sent the same bytes each time", async () => {
    const receiver = await bench.receiver(() => 500);
    const [state, attempts, createdAt] = await dayOfRetries(receiver, { speed: 1 });
    expect(state).toBe("failed");
    expect(attempts[0]?.at).toBe(createdAt);
    expect(attempts.every(({ status }) => status === 500)).toBe(true);
    const delays = delaysOf(attempts);
    for (const [index, delay] of delays.entries()) {
      const full = Math.min(hourMs, 1000 * 2 ** index);
      expect(delay).toBeGreaterThanOrEqual(full * 0.75);
      expect(delay).toBeLessThanOrEqual(full + 1);
    }
    const growing = delays.slice(0, 12);
    expect(growing.every((delay, index) => delay > (growing[index - 1] ?? 0))).toBe(true);
    const span = (attempts.at(-1)?.at ?? 0) - createdAt;
    expect(span).toBeLessThanOrEqual(dayMs);
    expect(span).toBeGreaterThan(dayMs - hourMs);
    expect(receiver.received).toHaveLength(attempts.length);
    expect(new Set(receiver.received.map(({ body }) => body.toString())).size).toBe(1);
    expect(receiver.received.every((webhook) => webhook.signedBy("test-secret"))).toBe(true);
  });

  test("takes a minute at a speed of 1440", async () => {
    const receiver = await bench.receiver(() => 500);
    const options = { random: () => 0 };
    const [state, attempts, createdAt] = await dayOfRetries(receiver, { speed: 1440, options });
    expect(state).toBe("failed");
    expect((attempts.at(-1)?.at ?? 0) - createdAt).toBeLessThanOrEqual(60_000);
    expect((attempts.at(-1)?.at ?? 0) - createdAt).toBeGreaterThan(57_000);
    expect(delaysOf(attempts).at(-1)).toBe(2500);
  });

  test("ends with the first 2xx", async () => {
    const receiver = await bench.receiver((_webhook, index) => (index < 14 ? 503 : 204));
    const [state, attempts] = await dayOfRetries(receiver, { speed: 1 });
    expect(state).toBe("delivered");
    expect(attempts.map(({ status }) => status)).toEqual([...Array<number>(14).fill(503), 204]);
  });

  test("is as long as retryForMs, and none makes one attempt", async () => {
    const receiver = await bench.receiver(() => 500);
    const [state, attempts] = await dayOfRetries(receiver, { speed: 1, options: { retryForMs: 0 } });
    expect([state, attempts.length]).toEqual(["failed", 1]);
    const short = { retryForMs: 3000, random: () => 0 };
    const [, twoMore] = await dayOfRetries(receiver, { speed: 1, options: short });
    expect(delaysOf(twoMore)).toEqual([1000, 2000]);
  });
});

const quick = {
  initialDelayMs: 5,
  maxDelayMs: 10,
  stopWaitMs: 1000,
} as const satisfies SandboxOptions["delivery"];

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
    expectWarning(/onAttempt threw: not yours/, 2);
  });
});

describe("trouble on purpose", () => {
  const deliver = async (
    options: NonNullable<SandboxOptions["delivery"]>,
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

  test("twiceAtOnce has two requests open at the same time, and one 2xx of them delivers", async () => {
    let waiting: (() => void) | undefined;
    const receiver = await bench.receiver(async () => {
      if (waiting !== undefined) {
        waiting();
        return 200;
      }
      await new Promise<void>((resolve) => (waiting = resolve));
      return 503;
    });
    const service = bench.started(receiver, { options: { ...quick, twiceAtOnce: true } });
    service.notify([event("e1")]);
    await service.idle();
    expect(receiver.received).toHaveLength(2);
    const [delivery] = service.list();
    expect(delivery?.state).toBe("delivered");
    expect(new Set(delivery?.attempts.map(({ status }) => status))).toEqual(new Set([200, 503]));
  });

  test("dropConnection loses the first answer, and the retry delivers", async () => {
    const [ids, service] = await deliver({ dropConnection: true }, 2);
    expect(ids).toEqual(["e1", "e2", "e1", "e2"]);
    expect(service.list()).toMatchObject([
      { state: "delivered", attempts: [{ error: "connection-lost" }, { status: 200 }] },
      { state: "delivered", attempts: [{ error: "connection-lost" }, { status: 200 }] },
    ]);
  });
});

describe("stop and start", () => {
  test("a request that a process left under way is sent again by the next one", async () => {
    const file = join(testFolder(), "sandbox.db");
    const receiver = await bench.receiver((_webhook, index) => (index === 0 ? undefined : 200));
    const first = new Database(file);
    const store = new DocumentStore(first);
    const dying = bench.started(receiver, { store, options: { stopWaitMs: 0 } });
    dying.notify([event("e1")]);
    await eventually(() => receiver.received.length > 0);
    dying.start();
    await dying.stop();
    expect(dying.list()).toMatchObject([{ state: "pending", attempts: [] }]);
    first.close();
    const service = bench.service({ store: new DocumentStore(bench.database(file)) });
    service.start();
    await service.idle();
    expect(service.list()).toMatchObject([{ state: "delivered", attempts: [{ status: 200 }] }]);
    expect(receiver.received[1]?.body).toEqual(receiver.received[0]?.body);
  });

  test("what became due while nothing ran gets its attempt, even after the day", async () => {
    const receiver = await bench.receiver((_webhook, index) => (index === 0 ? 500 : 200));
    const database = bench.database();
    const time = new FakeTime();
    const before = bench.started(receiver, { ...time.init, store: new DocumentStore(database) });
    before.notify([event("e1")]);
    time.letGo();
    await time.armed();
    await before.stop();
    time.nowMs += 10 * 86_400_000;
    const after = bench.service({ ...time.init, store: new DocumentStore(database) });
    after.start();
    await time.runUntilIdle(after);
    expect(after.list()).toMatchObject([
      { state: "delivered", attempts: [{ status: 500 }, { status: 200 }] },
    ]);
  });

  test("stop waits for the answer of a request under way and writes it down", async () => {
    let answer = (): void => {};
    const receiver = await bench.receiver(
      () =>
        new Promise((resolve) => {
          answer = () => resolve(200);
        }),
    );
    const service = bench.started(receiver);
    service.notify([event("e1")]);
    await eventually(() => receiver.received.length > 0);
    const stopped = service.stop();
    answer();
    await stopped;
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
    const service = bench.started(receiver);
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
    const service = bench.started(receiver, { ...time.init, store: new DocumentStore(database) });
    service.notify([event("e1")]);
    database.exec("ALTER TABLE documents RENAME TO gone");
    time.letGo();
    await time.armed();
    expect(time.delayMs).toBe(1000);
    const [message, name] = warned.mock.calls[0] ?? [];
    expect([message, name]).toEqual([expect.stringContaining("documents"), "CountersignWarning"]);
    expect(message).not.toContain(credentials.secret);
    expect(service.list()).toMatchObject([{ state: "pending", attempts: [] }]);
    database.exec("ALTER TABLE gone RENAME TO documents");
    warned.mockRestore();
    await time.runUntilIdle(service);
    expect(service.list()).toMatchObject([{ state: "delivered", attempts: [{ status: 200 }] }]);
    expect(receiver.received).toHaveLength(2);
  });
});
