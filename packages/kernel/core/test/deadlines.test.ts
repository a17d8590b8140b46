import { AsyncLocalStorage, createHook } from "node:async_hooks";
import { execFileSync } from "node:child_process";
import { setTimeout as sleep } from "node:timers/promises";
import { withDeadline } from "@countersign/core";
import { Deadlines, inTime } from "@countersign/core/internal";
import type { Clock } from "../dist/deadlines.js";
import { afterEach, beforeEach, describe, expect, jest, test } from "@jest/globals";
import { steadyTest } from "@countersign/test-support/runs/steadily.ts";

const late = (): Error => new Error("too late");
const never = (): Promise<never> => new Promise(() => undefined);

/** A clock that stands still, and the timer that waits for it. */
class StoppedClock implements Clock {
  nowMs = 1_000;
  started = 0;
  timer: { dueMs: number; callback: () => void; ref: boolean } | undefined;

  readonly now = (): number => this.nowMs;

  readonly startTimer = (callback: () => void, delayMs: number): NodeJS.Timeout => {
    expect(this.timer).toBeUndefined();
    const timer = { dueMs: this.nowMs + delayMs, callback, ref: true };
    this.timer = timer;
    this.started += 1;
    return {
      ref: () => (timer.ref = true),
      unref: () => (timer.ref = false),
    } as unknown as NodeJS.Timeout;
  };

  fire(lagMs = 0): void {
    const { timer } = this;
    if (timer === undefined) throw new Error("no timer");
    this.timer = undefined;
    this.nowMs = timer.dueMs + lagMs;
    timer.callback();
  }
}

describe("Deadlines", () => {
  let clock: StoppedClock;
  let deadlines: Deadlines;
  let expired: string[];
  const entry = (name: string, more?: () => void) => ({
    expire: () => {
      expired.push(name);
      more?.();
    },
  });

  beforeEach(() => {
    clock = new StoppedClock();
    deadlines = new Deadlines(100, { keepsAlive: true, clock });
    expired = [];
  });

  test("expires each at its own time, by one timer", () => {
    deadlines.add(entry("a"));
    clock.nowMs += 30;
    deadlines.add(entry("b"));
    deadlines.add(entry("c"));
    expect(clock.timer?.dueMs).toBe(1_100);
    clock.fire();
    expect(expired).toEqual(["a"]);
    expect(clock.timer?.dueMs).toBe(1_130);
    clock.fire();
    expect(expired).toEqual(["a", "b", "c"]);
    expect(deadlines.idle).toBe(true);
  });

  test("starts no timer for what is removed in time, however much it is", () => {
    for (let index = 0; index < 1_000; index += 1) {
      const one = entry("in time");
      deadlines.add(one);
      deadlines.remove(one);
    }
    expect(clock.started).toBe(1);
    expect(deadlines.idle).toBe(false);
    clock.fire();
    expect(expired).toEqual([]);
    expect(deadlines.idle).toBe(true);
  });

  test("expires what a timer was set for, also when it is early, and what a late one has passed", () => {
    deadlines.add(entry("a"));
    clock.fire(-0.4);
    expect(expired).toEqual(["a"]);
    deadlines.add(entry("b"));
    clock.nowMs += 60;
    deadlines.add(entry("c"));
    clock.fire(60);
    expect(expired).toEqual(["a", "b", "c"]);
  });

  test("keeps the process alive exactly while something waits", () => {
    const first = entry("a");
    const second = entry("b");
    deadlines.add(first);
    deadlines.add(second);
    deadlines.remove(first);
    deadlines.remove(first);
    expect(clock.timer?.ref).toBe(true);
    deadlines.remove(second);
    expect(clock.timer?.ref).toBe(false);
    clock.nowMs += 50;
    deadlines.add(entry("c"));
    expect(clock.timer?.ref).toBe(true);
    clock.fire();
    expect(expired).toEqual([]);
    expect(clock.timer).toMatchObject({ ref: true, dueMs: 1_150 });
  });

  test("keeps nothing alive when it is not to", () => {
    deadlines = new Deadlines(100, { keepsAlive: false, clock });
    const one = entry("a");
    deadlines.add(one);
    deadlines.remove(one);
    clock.nowMs += 50;
    deadlines.add(one);
    expect(clock.timer?.ref).toBe(false);
    clock.fire();
    expect(clock.timer?.ref).toBe(false);
    clock.fire();
    expect(expired).toEqual(["a"]);
  });

  test("is told of nothing that was removed by another's end", () => {
    const second = entry("second");
    deadlines.add(entry("first", () => deadlines.remove(second)));
    deadlines.add(second);
    clock.fire();
    expect(expired).toEqual(["first"]);
    expect(deadlines.idle).toBe(true);
  });

  test("keeps the order of what is added while others are told", () => {
    deadlines.add(entry("first", () => deadlines.add(entry("third"))));
    clock.nowMs += 50;
    deadlines.add(entry("second"));
    clock.fire();
    expect(clock.timer?.dueMs).toBe(1_150);
    clock.fire();
    expect(clock.timer?.dueMs).toBe(1_200);
    clock.fire();
    expect(expired).toEqual(["first", "second", "third"]);
    deadlines.add(entry("fourth", () => deadlines.add(entry("fifth"))));
    clock.fire();
    clock.fire();
    expect(expired.slice(3)).toEqual(["fourth", "fifth"]);
  });

  test("keeps nothing of the context in which its timer began", async () => {
    const context = new AsyncLocalStorage<string>();
    const real = new Deadlines(5, { keepsAlive: true });
    const seen = await context.run(
      "of a request",
      () => new Promise((resolve) => real.add({ expire: () => resolve(context.getStore()) })),
    );
    expect(seen).toBeUndefined();
  });
});

describe("deadlines of many calls", () => {
  afterEach(() => {
    jest.useRealTimers();
  });

  async function timersStartedBy(calls: () => Promise<unknown>): Promise<number> {
    let started = 0;
    const hook = createHook({
      init: (_id, type) => {
        if (type === "Timeout") started += 1;
      },
    }).enable();
    await calls();
    hook.disable();
    return started;
  }

  test("share one timer, however many are answered in time", async () => {
    const started = await timersStartedBy(async () => {
      for (let index = 0; index < 500; index += 1) await withDeadline(Promise.resolve(index), 7_001, late);
    });
    expect(started).toBe(1);
  });

  test("are none for an answer that is there", async () => {
    const started = await timersStartedBy(async () => {
      for (let index = 0; index < 10; index += 1) expect(await inTime(index, 7_002, late)).toBe(index);
    });
    expect(started).toBe(0);
  });

  test("end each at its time", async () => {
    jest.useFakeTimers();
    const outcomes: string[] = [];
    const call = async (name: string, work: PromiseLike<unknown>): Promise<void> => {
      try {
        await inTime(work, 120, late);
        outcomes.push(`${name} in time`);
      } catch (error) {
        outcomes.push(`${name} ${String(error)}`);
      }
    };
    const first = call("first", never());
    await jest.advanceTimersByTimeAsync(60);
    const second = call("second", never());
    const third = call("third", new Promise((resolve) => setTimeout(resolve, 90)));
    await jest.advanceTimersByTimeAsync(60);
    await first;
    expect(outcomes).toEqual(["first Error: too late"]);
    await jest.advanceTimersByTimeAsync(60);
    await Promise.all([second, third]);
    expect(outcomes.slice(1)).toEqual(["third in time", "second Error: too late"]);
  });

  test("end by the clock that was there when they began", async () => {
    const real = withDeadline(never(), 50, late).catch(() => "real");
    jest.useFakeTimers();
    const fake = withDeadline(never(), 50, late).catch(() => "fake");
    await jest.advanceTimersByTimeAsync(50);
    expect(await fake).toBe("fake");
    const forgotten = withDeadline(never(), 50, late).catch(() => "forgotten");
    jest.useRealTimers();
    const after = withDeadline(never(), 50, late).catch(() => "after");
    expect(await Promise.all([real, after])).toEqual(["real", "after"]);
    expect(await Promise.race([forgotten, sleep(100, "still waiting")])).toBe("still waiting");
  });

  steadyTest(
    "of more different time-outs than are shared end all the same, and leave room for others",
    async () => {
      const pending = Array.from({ length: 200 }, (_, index) =>
        withDeadline(never(), 300 + index, late).catch(() => index),
      );
      const again = (timeoutMs: number): Promise<number> =>
        timersStartedBy(async () => {
          for (let index = 0; index < 10; index += 1) await withDeadline(Promise.resolve(), timeoutMs, late);
        });
      expect(await again(300)).toBe(0);
      expect(await again(499)).toBe(10);
      expect(await Promise.all(pending)).toEqual(pending.map((_, index) => index));
      expect(await again(499)).toBe(1);
    },
  );

  test("that cannot say what is late still end", async () => {
    const broken = (): never => {
      throw new Error("no words");
    };
    await expect(withDeadline(never(), 10, broken)).rejects.toThrow("no words");
  });

  test("take any thenable, and fail with it", async () => {
    const thenable = (settle: (resolve: (value: string) => void) => void): PromiseLike<string> =>
      // oxlint-disable-next-line unicorn/no-thenable -- what the test is about
      ({ then: settle }) as unknown as PromiseLike<string>;
    expect(
      await inTime(
        thenable((resolve) => resolve("done")),
        1_000,
        late,
      ),
    ).toBe("done");
    const broken = thenable(() => {
      throw new Error("broken");
    });
    await expect(inTime(broken, 1_000, late)).rejects.toThrow("broken");
  });
});

describe("a process", () => {
  const run = (code: string): { output: string; tookMs: number } => {
    const source = `import { withDeadline } from ${JSON.stringify(import.meta.resolve("@countersign/core"))};
      const late = () => new Error("too late");
      ${code}`;
    const startedAt = performance.now();
    const output = execFileSync(process.execPath, ["--input-type=module", "-e", source], {
      encoding: "utf8",
    });
    return { output, tookMs: performance.now() - startedAt };
  };

  test("ends at once when all its calls were answered", () => {
    const { output, tookMs } = run(`
      for (let i = 0; i < 3; i += 1) await withDeadline(Promise.resolve(), 30_000, late);
      console.log("answered");`);
    expect(output).toBe("answered\n");
    expect(tookMs).toBeLessThan(20_000);
  });

  test("lives until the deadline of a call that is not answered", () => {
    const { output } = run(`
      await withDeadline(Promise.resolve(), 200, late);
      withDeadline(new Promise(() => {}), 200, late).catch((error) => console.log(error.message));`);
    expect(output).toBe("too late\n");
  });
});
