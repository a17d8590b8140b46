import { afterEach, describe, expect, test } from "@jest/globals";
import type { DeliveryAttempt } from "../src/delivery/delivery.ts";
import type { DeliveryOptions } from "../src/index.ts";
import * as fc from "fast-check";
import { backoffMs } from "../src/delivery/delivery-sender.ts";
import { DeliveryBench, event, FakeTime, type Receiver } from "./delivery-bench.ts";

const bench = new DeliveryBench();
afterEach(() => bench.close());

const dayMs = 86_400_000;
const hourMs = 3_600_000;

function delaysOf(attempts: readonly DeliveryAttempt[]): number[] {
  return attempts.slice(1).map(({ at }, index) => at - (attempts[index]?.at ?? 0));
}

async function dayOfRetries(
  receiver: Receiver,
  { speed, options }: { speed: number; options?: DeliveryOptions },
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

describe("backoffMs", () => {
  const random = fc.double({ min: 0, max: 0.999_999, noNaN: true });

  test("stays within its bounds and grows as long as it doubles, whatever the dice say", () => {
    fc.assert(
      fc.property(fc.nat(60), random, random, (failures, first, second) => {
        const bounds = { initialDelayMs: 1000, maxDelayMs: hourMs };
        const delay = backoffMs(failures, { ...bounds, random: () => first });
        const full = Math.min(hourMs, 1000 * 2 ** failures);
        expect(delay).toBeGreaterThan(full * 0.75);
        expect(delay).toBeLessThanOrEqual(full);
        const next = backoffMs(failures + 1, { ...bounds, random: () => second });
        if (full * 2 <= hourMs) expect(next).toBeGreaterThan(delay);
      }),
      { numRuns: 300 },
    );
  });
});
