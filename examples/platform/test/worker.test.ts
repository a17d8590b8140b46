import { afterEach, beforeEach, describe, expect, test } from "@jest/globals";
import { pino } from "pino";
import { eventually } from "@countersign/test-support/runs/eventually.ts";
import type { Task } from "../src/ledgers/outbox.ts";
import { backoffMs, startWorker, type Worker, type WorkerOptions } from "../src/workers/worker.ts";
import { payout, testEngines, type TestStorage } from "./test-storage.ts";

let opened: TestStorage;
const workers: Worker[] = [];

function start(run: WorkerOptions["run"], options: Partial<WorkerOptions> = {}): Worker {
  const worker = startWorker({
    kind: "transfer",
    outbox: options.outbox ?? opened.outbox,
    run,
    backoff: { baseMs: 100, maxMs: 1_000 },
    maxAttempts: 3,
    timeoutMs: 1_000,
    pollMs: 5,
    logger: pino({ level: "silent" }),
    random: () => 0,
    ...options,
  });
  workers.push(worker);
  return worker;
}

async function accept(...keys: string[]): Promise<void> {
  for (const key of keys) await opened.ledger.accept(payout(key), () => {});
}

interface StoredTask {
  readonly state: string;
  readonly attempts: number;
  readonly dueAt: number;
  readonly lastError: string | null;
}

async function stateOf(key: string): Promise<StoredTask> {
  const [row] = (await opened.rows(
    `SELECT state, attempts, due_at, last_error FROM {}outbox WHERE idempotency_key = '${key}' AND task = 'transfer'`,
  )) as { state: string; attempts: number; due_at: number | string; last_error: string | null }[];
  if (row === undefined) throw new Error("there is no such task");
  const { due_at: dueAt, last_error: lastError, ...rest } = row;
  return { ...rest, dueAt: Number(dueAt), lastError };
}

for (const engine of testEngines)
  engine.describe(`startWorker on ${engine.name}`, () => {
    beforeEach(async () => {
      opened = await engine.open();
    });

    afterEach(async () => {
      await Promise.all(workers.splice(0).map((worker) => worker.stop()));
      await opened.close();
    });

    test("runs what is due, one after the other, oldest first", async () => {
      await accept("a.b.1");
      opened.now = 2_000;
      await accept("a.b.2");
      const seen: string[] = [];
      let running = 0;
      start(async (task) => {
        running += 1;
        expect(running).toBe(1);
        await Promise.resolve();
        seen.push(task.idempotencyKey);
        await opened.outbox.finish(task.id);
        running -= 1;
      });
      await eventually(() => seen.length === 2);
      expect(seen).toEqual(["a.b.1", "a.b.2"]);
    });

    test("is woken before its poll", async () => {
      const seen: Task[] = [];
      const worker = start(
        async (task) => {
          seen.push(task);
          await opened.outbox.finish(task.id);
        },
        { pollMs: 60_000 },
      );
      await new Promise((resolve) => setTimeout(resolve, 20));
      await accept("a.b.c");
      worker.wake();
      await eventually(() => seen.length === 1);
    });

    test("tries again after a growing pause, then gives up and keeps the row", async () => {
      await accept("a.b.c");
      const attempts: number[] = [];
      start(async (task) => {
        attempts.push(task.attempts);
        throw new Error("the bank is closed");
      });
      await eventually(() => attempts.length === 1);
      await eventually(async () => (await stateOf("a.b.c")).dueAt === 1_100);
      opened.now = 1_099;
      await new Promise((resolve) => setTimeout(resolve, 30));
      expect(attempts).toEqual([1]);
      opened.now = 1_100;
      await eventually(async () => (await stateOf("a.b.c")).dueAt === 1_300);
      opened.now = 1_300;
      await eventually(async () => (await stateOf("a.b.c")).state === "dead");
      expect(attempts).toEqual([1, 2, 3]);
      expect(await stateOf("a.b.c")).toMatchObject({ attempts: 3, lastError: "the bank is closed" });
      opened.now = 1_000_000;
      await new Promise((resolve) => setTimeout(resolve, 30));
      expect(attempts).toHaveLength(3);
    });

    test("goes on after a run that never answers", async () => {
      await accept("a.b.1", "a.b.2");
      const seen: string[] = [];
      const aborted: boolean[] = [];
      start(
        async (task, signal) => {
          seen.push(task.idempotencyKey);
          if (task.idempotencyKey === "a.b.2") return opened.outbox.finish(task.id);
          signal.addEventListener("abort", () => aborted.push(true));
          return new Promise<void>(() => {});
        },
        { timeoutMs: 30 },
      );
      await eventually(() => seen.length === 2);
      expect(seen).toEqual(["a.b.1", "a.b.2"]);
      await eventually(() => aborted.length === 1);
      expect(await stateOf("a.b.1")).toMatchObject({ state: "due", attempts: 1, dueAt: 1_100 });
    });

    test("takes up a task whose worker died, once its lease has passed", async () => {
      await accept("a.b.c");
      expect(await opened.outbox.claim("transfer", 3_000)).toBeDefined();
      const seen: Task[] = [];
      start(async (task) => {
        seen.push(task);
        await opened.outbox.finish(task.id);
      });
      opened.now = 3_999;
      await new Promise((resolve) => setTimeout(resolve, 30));
      expect(seen).toEqual([]);
      opened.now = 4_000;
      await eventually(() => seen.length === 1);
      expect(seen[0]).toMatchObject({ idempotencyKey: "a.b.c", attempts: 2 });
    });

    test("stop() waits for the task that runs and starts no other", async () => {
      await accept("a.b.1", "a.b.2");
      const seen: string[] = [];
      let end = (): void => {};
      const worker = start(async (task) => {
        seen.push(task.idempotencyKey);
        await new Promise<void>((resolve) => {
          end = resolve;
        });
        await opened.outbox.finish(task.id);
      });
      await eventually(() => seen.length === 1);
      const stopping = worker.stop();
      const pause = new Promise((resolve) => setTimeout(resolve, 20, "still waiting"));
      expect(await Promise.race([stopping, pause])).toBe("still waiting");
      end();
      await stopping;
      expect(seen).toEqual(["a.b.1"]);
      expect(await stateOf("a.b.1")).toMatchObject({ state: "done" });
      expect(await stateOf("a.b.2")).toMatchObject({ state: "due", attempts: 0 });
    });

    test("survives a database that fails for a while", async () => {
      await accept("a.b.c");
      let failures = 2;
      const seen: Task[] = [];
      const outbox: WorkerOptions["outbox"] = {
        ...opened.outbox,
        claim(...claim) {
          failures -= 1;
          if (failures >= 0) throw new Error("database is locked");
          return opened.outbox.claim(...claim);
        },
      };
      start(
        async (task) => {
          seen.push(task);
          await opened.outbox.finish(task.id);
        },
        { outbox },
      );
      await eventually(() => seen.length === 1);
    });
  });

describe("startWorker, while the outbox is being asked", () => {
  /** An outbox whose next answer, that there is nothing to do, comes when a test says so. */
  function slowOutbox(): {
    readonly outbox: WorkerOptions["outbox"];
    answer(): void;
    readonly asked: () => number;
  } {
    let answer = (): void => {};
    let asked = 0;
    const claim = (): Promise<undefined> => {
      asked += 1;
      return new Promise((resolve) => {
        answer = () => resolve(undefined);
      });
    };
    const outbox = { claim, finish: () => {}, retry: () => {}, bury: () => {} };
    return { outbox, answer: () => answer(), asked: () => asked };
  }

  const idle = async (): Promise<void> => {};

  test("is woken for what has been added in the meantime", async () => {
    const { outbox, answer, asked } = slowOutbox();
    const worker = start(idle, { outbox, pollMs: 60_000 });
    worker.wake();
    answer();
    await eventually(() => asked() === 2);
    const stopped = worker.stop();
    answer();
    await stopped;
  });
});

describe("backoffMs", () => {
  test.each([
    ["the first pause", 1, 0, 100],
    ["the limit", 5, 0, 1_000],
    ["half of it by chance", 1, 1, 50],
    ["a part of it by chance", 5, 0.5, 750],
  ])("gives %s", (_name, attempts, random, expected) => {
    expect(backoffMs({ baseMs: 100, maxMs: 1_000 }, attempts, random)).toBe(expected);
  });
});
