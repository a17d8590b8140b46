import { describe, expect, test } from "@jest/globals";
import type { Delivery } from "@countersign/sandbox";
import { followDeliveries } from "../src/playing/follow-deliveries.ts";

function delivery(id: number, changes: Partial<Delivery> = {}): Delivery {
  const webhookId = `webhook-${id}`;
  const [endpointId, url] = ["endpoint-1", "https://platform.example/hooks"];
  const lists = { eventIds: [], eventTypes: [], attempts: [] };
  return { id, webhookId, endpointId, url, ...lists, state: "pending", createdAt: 1, ...changes };
}

/** What is shown for one reading after the other. */
async function shownFor(readings: readonly (readonly Delivery[])[]): Promise<number[][]> {
  const ending = new AbortController();
  const shown: number[][] = [];
  let next = 0;
  await followDeliveries({
    read: () => {
      const reading = readings[next] ?? [];
      next += 1;
      if (next >= readings.length) ending.abort();
      return Promise.resolve(reading);
    },
    show: (deliveries) => shown.push(deliveries.map(({ id }) => id)),
    intervalMs: 1,
    signal: ending.signal,
  });
  return shown;
}

describe("followDeliveries", () => {
  test.each<[string, readonly (readonly Delivery[])[], number[][]]>([
    ["everything at first", [[delivery(1), delivery(2)]], [[1, 2]]],
    ["nothing again", [[delivery(1)], [delivery(1)], [delivery(1)]], [[1]]],
    ["what is new", [[delivery(1)], [delivery(1), delivery(2)]], [[1], [2]]],
    ["a change of state", [[delivery(1)], [delivery(1, { state: "delivered" })]], [[1], [1]]],
    [
      "a further attempt",
      [[delivery(1)], [delivery(1, { attempts: [{ at: 2, durationMs: 1, status: 503 }] })]],
      [[1], [1]],
    ],
    [
      "the same number of another sandbox",
      [[delivery(1)], [delivery(1, { webhookId: "other" })]],
      [[1], [1]],
    ],
    ["nothing of nothing", [[], []], []],
  ])("shows %s", async (_name, readings, expected) => {
    expect(await shownFor(readings)).toEqual(expected);
  });

  test("rejects when a reading fails", async () => {
    const failure = new Error("gone");
    const followed = followDeliveries({
      read: () => Promise.reject(failure),
      show: () => {},
      intervalMs: 1,
      signal: new AbortController().signal,
    });
    await expect(followed).rejects.toBe(failure);
  });

  test("does not wait for the end of a pause", async () => {
    const ending = new AbortController();
    const followed = followDeliveries({
      read: () => Promise.resolve([delivery(1)]),
      show: () => setImmediate(() => ending.abort()),
      intervalMs: 3_600_000,
      signal: ending.signal,
    });
    await expect(followed).resolves.toBeUndefined();
  });
});
