import { describe, expect, test } from "@jest/globals";
import { setTimeout as sleep } from "node:timers/promises";
import { steadily } from "./steadily.ts";

function standStill(ms: number): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);
}

describe("steadily", () => {
  test("runs a test once that succeeds, however long it stands still, with its arguments", async () => {
    const runs: unknown[] = [];
    await steadily(async (one: number, other: string) => {
      runs.push([one, other]);
      standStill(200);
    })(1, "a");
    expect(runs).toEqual([[1, "a"]]);
  });

  test("fails at once with a test that fails without a stall", async () => {
    const runs: number[] = [];
    // This process, too, may stand still, but hardly each time.
    for (let time = 0; time < 5; time += 1) {
      runs[time] = 0;
      const failing = steadily(async () => {
        runs[time] = (runs[time] ?? 0) + 1;
        await sleep(5);
        throw new Error("broken");
      });
      await expect(failing()).rejects.toThrow("broken");
    }
    expect(Math.min(...runs)).toBe(1);
  });

  test.each<[string, number, number]>([
    ["at its begin", 0, 20],
    ["in the middle", 20, 20],
    ["at its end", 20, 0],
  ])(
    "repeats a test that failed and stood still %s, five times at most",
    async (_when, beforeMs, afterMs) => {
      let runs = 0;
      const stalled = (failures: number) =>
        steadily(async () => {
          runs += 1;
          if (beforeMs > 0) await sleep(beforeMs);
          standStill(200);
          if (afterMs > 0) await sleep(afterMs);
          if (runs <= failures) throw new Error("too late");
        });
      await stalled(2)();
      expect(runs).toBe(3);
      runs = 0;
      await expect(stalled(9)()).rejects.toThrow("too late");
      expect(runs).toBe(5);
    },
  );
});
