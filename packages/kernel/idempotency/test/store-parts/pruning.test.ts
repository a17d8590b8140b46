import { subscribe, unsubscribe } from "node:diagnostics_channel";
import { onTraceEnd, traces } from "@countersign/core";
import { answerOf, pruning, runSteps, runStepsNow, type Steps } from "@countersign/idempotency/store";
import { afterEach, beforeEach, describe, expect, jest, test } from "@jest/globals";

const intervalMs = 10_000;
const batchSize = 200;
// A quarter of jitter either way.
const earliestMs = 7_500;
const latestMs = 12_500;

describe("pruning.start()", () => {
  let notices: unknown[];
  const listener = (notice: unknown): void => void notices.push(notice);

  beforeEach(() => {
    notices = [];
    subscribe("countersign:notice", listener);
    jest.useFakeTimers();
  });

  afterEach(() => {
    unsubscribe("countersign:notice", listener);
    jest.useRealTimers();
  });

  function prune(removeBatch: () => number | undefined | Promise<number | undefined>) {
    const counted = jest.fn(removeBatch);
    return {
      counted,
      end: pruning.start({ factory: "createAStore", intervalMs, batchSize, removeBatch: counted }),
    };
  }

  const kinds = [
    ["a synchronous engine", <T>(value: T): T => value],
    ["an asynchronous engine", <T>(value: T): Promise<T> => Promise.resolve(value)],
  ] as const;

  describe.each(kinds)("with %s", (_kind, answer) => {
    test("removes one batch about every interval, never before three quarters of it", async () => {
      const { counted, end } = prune(() => answer(3));
      await jest.advanceTimersByTimeAsync(earliestMs - 1);
      expect(counted).toHaveBeenCalledTimes(0);
      await jest.advanceTimersByTimeAsync(latestMs - earliestMs + 1);
      expect(counted).toHaveBeenCalledTimes(1);
      // Between eight intervals of the longest kind and those of the shortest.
      await jest.advanceTimersByTimeAsync(7 * latestMs);
      expect(counted.mock.calls.length).toBeGreaterThanOrEqual(8);
      expect(counted.mock.calls.length).toBeLessThanOrEqual(Math.floor((8 * latestMs) / earliestMs));
      end();
    });

    test("goes on at once after a full batch, until one is not full", async () => {
      const sizes = [batchSize, batchSize, batchSize - 1];
      const { counted, end } = prune(() => answer(sizes.shift() ?? 0));
      await jest.advanceTimersByTimeAsync(latestMs + 100);
      expect(counted).toHaveBeenCalledTimes(3);
      end();
    });

    test("leaves time for others between full batches, as long for each row", async () => {
      const { counted, end } = prune(() => answer(batchSize));
      await jest.advanceTimersByTimeAsync(latestMs);
      counted.mockClear();
      await jest.advanceTimersByTimeAsync(1000);
      expect(counted.mock.calls.length * batchSize).toBe(10_000);
      end();
    });

    test("waits a whole interval when it could not try", async () => {
      const { counted, end } = prune(() => answer(undefined));
      await jest.advanceTimersByTimeAsync(latestMs);
      expect(counted).toHaveBeenCalledTimes(1);
      await jest.advanceTimersByTimeAsync(earliestMs - 1);
      expect(counted.mock.calls.length).toBeLessThanOrEqual(2);
      end();
    });

    test("ends, also from within a batch, and leaves no timer", async () => {
      const pruned = prune(() => {
        pruned.end();
        return answer(batchSize);
      });
      await jest.advanceTimersByTimeAsync(10 * latestMs);
      expect(pruned.counted).toHaveBeenCalledTimes(1);
      expect(jest.getTimerCount()).toBe(0);
    });
  });

  test.each([
    [
      "throws",
      () => {
        throw new Error("disk full");
      },
    ],
    ["rejects", () => Promise.reject(new Error("disk full"))],
  ])("says on the notice channel when the engine %s, and tries again", async (_how, removeBatch) => {
    const { counted, end } = prune(removeBatch);
    await jest.advanceTimersByTimeAsync(latestMs);
    expect(notices).toEqual([
      {
        guard: "createAStore",
        code: "prune-failed",
        message: expect.any(String),
        error: expect.objectContaining({ message: "disk full" }),
      },
    ]);
    await jest.advanceTimersByTimeAsync(latestMs);
    expect(counted.mock.calls.length).toBeGreaterThanOrEqual(2);
    end();
  });

  test("says nothing of a failure after its end", async () => {
    const pruned = prune(() => {
      pruned.end();
      return Promise.reject(new Error("the pool is closed"));
    });
    await jest.advanceTimersByTimeAsync(latestMs);
    expect(pruned.counted).toHaveBeenCalledTimes(1);
    expect(notices).toEqual([]);
  });

  test.each<[string, () => number | undefined | Promise<number | undefined>, string, string | undefined]>([
    ["at once", () => 3, "ok", "sqlite"],
    ["later", async () => 3, "ok", undefined],
    ["by a rejection", () => Promise.reject(new Error("disk full")), "error", "sqlite"],
    [
      "by a throw",
      () => {
        throw new Error("disk full");
      },
      "error",
      undefined,
    ],
  ])(
    "tells of each batch that is answered %s, while somebody listens",
    async (_how, removeBatch, outcome, engine) => {
      const told: unknown[] = [];
      // A file that ran before in this process may still give keys back.
      const stopListening = onTraceEnd(traces.store, (context) => {
        if (context.step === "prune") told.push(context);
      });
      const end = pruning.start({ factory: "createAStore", engine, intervalMs, batchSize, removeBatch });
      await jest.advanceTimersByTimeAsync(latestMs);
      stopListening();
      await jest.advanceTimersByTimeAsync(latestMs);
      end();
      expect(told).toEqual([
        expect.objectContaining({
          engine: engine ?? "other",
          step: "prune",
          outcome,
          durationMs: expect.any(Number),
        }),
      ]);
    },
  );

  test("has no timer when the interval is 0", () => {
    pruning.start({ factory: "createAStore", intervalMs: 0, batchSize, removeBatch: () => 0 });
    expect(jest.getTimerCount()).toBe(0);
  });

  test("keeps no process alive", () => {
    jest.useRealTimers();
    const before = process.getActiveResourcesInfo().filter((kind) => kind === "Timeout").length;
    const end = pruning.start({ factory: "createAStore", intervalMs, batchSize, removeBatch: () => 0 });
    expect(process.getActiveResourcesInfo().filter((kind) => kind === "Timeout")).toHaveLength(before);
    end();
  });
});

interface Batch {
  readonly rows: number;
  readonly counted: number;
}

describe.each([
  ["a synchronous engine", async (removeBatch: () => Batch) => runStepsNow(allOf(removeBatch))],
  [
    "an asynchronous engine",
    (removeBatch: () => Batch) => runSteps(allOf(() => Promise.resolve().then(removeBatch))),
  ],
])("pruning.all() on %s", (_name, prune) => {
  test("removes batches until one is not full, and counts what is to be told of", async () => {
    const batches = [
      { rows: batchSize, counted: batchSize },
      { rows: batchSize, counted: 3 },
      { rows: batchSize - 1, counted: 5 },
      { rows: batchSize, counted: 7 },
    ];
    let removed = 0;
    await expect(prune(() => batches[removed++]!)).resolves.toBe(batchSize + 8);
    expect(removed).toBe(3);
  });

  test("ends with the error of a batch", async () => {
    const error = new Error("the engine is away");
    const failing = (): never => {
      throw error;
    };
    await expect(prune(failing)).rejects.toBe(error);
  });
});

function allOf(removeBatch: () => Batch | Promise<Batch>): Steps<number> {
  return pruning.all(batchSize, () => answerOf(removeBatch()));
}

describe("pruning.batchOf()", () => {
  test("tells of done keys alone: nobody knows of a free one", () => {
    const rows = [{ state: "done" }, { state: "free" }, { state: "done" }];
    expect(pruning.batchOf(rows)).toEqual({ rows: 3, counted: 2 });
  });
});
