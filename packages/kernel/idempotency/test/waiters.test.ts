import { setImmediate as nextTurn } from "node:timers/promises";
import { getEventListeners } from "node:events";
import { beforeEach, describe, expect, test } from "@jest/globals";
import type { IdempotencyRecord } from "@countersign/idempotency";
import { Waiters } from "../src/waiters.ts";
import { faultyStore } from "@countersign/test-support/runs/faulty-store.ts";

const run: IdempotencyRecord = {
  state: "running",
  token: "t",
  fence: 1,
  fingerprint: "f",
  remainingMs: 60_000,
};
const done: IdempotencyRecord = { state: "done", token: "t", fence: 1, fingerprint: "f" };

/** Answers of the store, each given when the test says so. */
let reads: ((record: IdempotencyRecord | undefined) => void)[];
let waiters: Waiters;

beforeEach(() => {
  reads = [];
  const store = {
    ...faultyStore(),
    read: () => new Promise<IdempotencyRecord | undefined>((r) => reads.push(r)),
  };
  waiters = new Waiters({ store, pollMs: 10_000, storeTimeoutMs: 10_000, maxWaiters: 2 });
});

function wait(
  client = new AbortController(),
  timeoutMs = 5_000,
): { client: AbortController; outcome: Promise<unknown> } {
  return { client, outcome: Promise.resolve(waiters.wait("k", client.signal, timeoutMs)) };
}

describe("Waiters", () => {
  test("looks again when it was woken during a look, whose answer may be older", async () => {
    const { outcome } = wait();
    waiters.wake("k");
    waiters.wake("k");
    waiters.wake("k");
    expect(reads).toHaveLength(1);
    reads[0]?.(run);
    await nextTurn();
    expect(reads).toHaveLength(2);
    reads[1]?.(done);
    expect(await outcome).toBe(done);
  });

  test("gives a freed key to one waiter, in the order of arrival", async () => {
    const first = wait();
    const second = wait();
    waiters.wake("k");
    reads[0]?.(undefined);
    expect(await first.outcome).toBe("claim");
    waiters.wake("k");
    reads[1]?.(done);
    expect(await second.outcome).toBe(done);
  });

  test("takes null, which databases say for what they do not have, for a freed key", async () => {
    const { outcome } = wait();
    waiters.wake("k");
    reads[0]?.(null as never);
    expect(await outcome).toBe("claim");
  });

  test("has room again for those that come after others have left, and keeps no listener", async () => {
    const first = wait();
    const second = wait();
    expect(await wait().outcome).toBe("timeout");
    first.client.abort();
    expect(await first.outcome).toBe("client-left");
    const third = wait();
    waiters.wake("k");
    reads[0]?.(done);
    expect(await second.outcome).toBe(done);
    expect(await third.outcome).toBe(done);
    const listeners = [first, second, third].map(({ client }) => getEventListeners(client.signal, "abort"));
    expect(listeners).toEqual([[], [], []]);
  });

  test("ends by time", async () => {
    expect(await wait(undefined, 20).outcome).toBe("timeout");
    expect(await wait(undefined, 0).outcome).toBe("timeout");
  });
});
