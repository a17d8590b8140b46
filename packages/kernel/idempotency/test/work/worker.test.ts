import { eventually, sleep } from "@countersign/test-support/runs/eventually.ts";
import { transactionBroken } from "@countersign/idempotency/store";
import { TaskError, type ClaimedTask } from "@countersign/idempotency/work";
import { describe, expect, test } from "@jest/globals";
import {
  addTo,
  attempted,
  changed,
  heard,
  notesOf,
  openStores,
  queue,
  queueOn,
  writeNote,
} from "./queues.ts";

const decision = { by: "operator", note: "the partner is down" };

describe("a failed attempt", () => {
  test.each<[string, unknown, "dead" | "failed", string, number | undefined]>([
    ["an error without a text", Object.create(null), "failed", "an error that has no text", undefined],
    ["an error of another class", new RangeError("too far"), "failed", "RangeError: too far", undefined],
    ["nothing", undefined, "failed", "undefined", undefined],
    ["a final TaskError", new TaskError("never", { isFinal: true }), "dead", "never", undefined],
    ["a TaskError with a time", new TaskError("later", { retryInMs: 60_000 }), "failed", "later", 60_000],
  ])("by %s is kept with its reason", async (_name, thrown, outcome, reason, retryInMs) => {
    const { clock, outcomes, errors, record } = await attempted({
      atLeastOnce() {
        throw thrown;
      },
    });
    expect([outcomes[0], errors[0]]).toEqual([outcome, thrown]);
    expect(record?.failures[0]).toMatchObject({ attempt: 1, reason });
    if (retryInMs !== undefined) expect(record?.dueAtMs).toBe(clock.now() + retryInMs);
  });

  test("is told to the app, which may fail at it", async () => {
    const told: unknown[] = [];
    const failing = {
      maxAttempts: 2,
      atLeastOnce() {
        throw new Error("no");
      },
      onFailure(task: ClaimedTask, error: unknown, isDead: boolean) {
        told.push([task.attempt, String(error), isDead]);
        return Promise.reject(new Error("no logger"));
      },
    };
    const { codes } = await attempted(failing, { until: "dead" });
    await eventually(() => codes.length === 3);
    expect(told).toEqual([
      [1, "Error: no", false],
      [2, "Error: no", true],
    ]);
    expect(codes).toEqual(expect.arrayContaining(["on-error-failed", "task-dead"]));
  });

  test("a dead task runs again when an operator retries it", async () => {
    let isFit = false;
    const { stores, jobs, outcomes } = await attempted({
      maxAttempts: 1,
      atLeastOnce() {
        if (!isFit) throw new Error("no");
      },
    });
    expect(outcomes).toEqual(["dead"]);
    isFit = true;
    expect(await stores.work.retry(queue, { deadSinceMs: 0 })).toBe(1);
    jobs.wake();
    await eventually(() => outcomes.includes("done"));
  });
});

test("an attempt that takes too long is aborted, and tried again", async () => {
  const { record } = await attempted(
    {
      timeoutMs: 20,
      async atLeastOnce(_task, { attempt, signal }) {
        if (attempt > 1) return;
        await eventually(() => signal.aborted);
        signal.throwIfAborted();
      },
    },
    { until: "done" },
  );
  expect(record?.failures[0]?.reason).toBe("the attempt took longer than 20 ms");
});

test("one that never ends leaves its task after a lease more", async () => {
  const { outcomes } = await attempted({
    timeoutMs: 10,
    leaseMs: 1_000,
    storeTimeoutMs: 500,
    maxAttempts: 1,
    atLeastOnce: () => new Promise(() => {}),
  });
  expect(outcomes).toEqual(["dead"]);
});

/** Takes the task from its owner, as another process does after the lease. */
async function takeOver({ stores, clock }: ReturnType<typeof openStores>): Promise<void> {
  clock.advance(60_000);
  const taken = await stores.work.claim({ queue, limit: 1, token: "another", leaseMs: 60_000 });
  expect(taken).toHaveLength(1);
}

describe("a task whose lease ended", () => {
  test.each(["commits", "fails"])("is gone for an owner that %s, and nothing of it stays", async (how) => {
    const { db, codes, outcomes, record } = await attempted((opened) => ({
      // With a second place it could claim the task itself once the lease has ended, before the other process does.
      concurrency: 1,
      async atLeastOnce(_task, { commit }) {
        await takeOver(opened);
        if (how === "fails") throw new Error("no");
        await commit((tx) => writeNote(tx, "twice"));
      },
    }));
    expect(outcomes).toEqual(["gone"]);
    expect(codes).toEqual(["task-gone"]);
    expect(notesOf(db)).toEqual([]);
    expect(record).toMatchObject({ state: "open", attempts: 2 });
  });

  test("aborts its old attempt, also when this worker has claimed it again", async () => {
    const reasons: unknown[] = [];
    const { outcomes } = await attempted(({ clock }) => ({
      async atLeastOnce(_task, { attempt, signal }) {
        if (attempt > 1) return;
        clock.advance(60_000);
        await eventually(() => signal.aborted);
        reasons.push(signal.reason);
      },
    }));
    await eventually(() => outcomes.length === 2);
    expect(new Set(outcomes)).toEqual(new Set(["done", "gone"]));
    expect(String(reasons[0])).toBe("Error: another worker has the task");
  });

  test("is renewed while its owner lives", async () => {
    let renewals = 0;
    const { outcomes, record } = await attempted(({ clock, stores }) => ({
      leaseMs: 1_000,
      storeTimeoutMs: 500,
      stores: {
        ...stores,
        work: changed(stores.work, {
          async extend(...parameters) {
            const extended = await stores.work.extend(...parameters);
            renewals += 1;
            return extended;
          },
        }),
      },
      async atLeastOnce() {
        clock.advance(900);
        await eventually(() => renewals > 0);
        clock.advance(900);
      },
    }));
    expect(outcomes).toEqual(["done"]);
    expect(record?.attempts).toBe(1);
  });
});

test("a task whose handler broke its transaction is told of, also to an app that hears of failures", async () => {
  const keep = (): never => {
    throw transactionBroken("it changed a table, which commits");
  };
  const { codes, outcomes } = await attempted(({ stores }) => ({
    stores: { ...stores, transactions: changed(stores.transactions, { keep }) },
    exactlyOnce: () => {},
    onFailure() {},
    backoffMs: 60_000,
    maxBackoffMs: 60_000,
  }));
  expect(outcomes).toEqual(["failed"]);
  expect(codes).toEqual(["transaction-broken"]);
});

test("a paused queue begins nothing until it is resumed", async () => {
  const { stores } = openStores();
  const { outcomes } = heard();
  const jobs = queueOn(stores, { atLeastOnce: () => {} });
  await stores.work.pause(queue, decision);
  jobs.start();
  await addTo(stores, jobs, { id: "1", body: "" });
  await sleep(50);
  expect((await stores.work.read(queue, "1"))?.attempts).toBe(0);
  expect(await stores.work.resume(queue)).toBe(true);
  await eventually(() => outcomes.includes("done"));
});

test("wake() does not wait for the next look, nor does add()", async () => {
  const { stores, jobs, outcomes } = await attempted({ atLeastOnce: () => {}, pollMs: 3_600_000 });
  await stores.transactions.run((tx) => void stores.work.add(tx, queue, [{ id: "2", body: "" }]));
  jobs.wake();
  await eventually(() => outcomes.length === 2);
});

test("tasks of one entity run in their order, and others beside them", async () => {
  const { stores, db, clock } = openStores();
  const { outcomes } = heard();
  const jobs = queueOn(stores, {
    exactlyOnce({ id, attempt }, { tx }) {
      if (id === "a1" && attempt === 1) throw new Error("no");
      writeNote(tx, id);
    },
  });
  const task = (id: string): { id: string; entity: string; body: string } => ({
    id,
    entity: id.slice(0, 1),
    body: "",
  });
  await addTo(stores, jobs, task("a1"), task("a2"), task("b1"));
  jobs.start();
  await eventually(() => outcomes.includes("done"));
  expect(notesOf(db)).toEqual(["b1"]);
  await eventually(() => {
    clock.advance(10);
    return notesOf(db).length === 3;
  });
  expect(notesOf(db)).toEqual(["b1", "a1", "a2"]);
});

describe("drain()", () => {
  test("awaits what runs, and begins nothing more", async () => {
    const { stores } = openStores();
    const { outcomes } = heard();
    let begun = 0;
    let end = (): void => {};
    const jobs = queueOn(stores, {
      concurrency: 1,
      async atLeastOnce() {
        begun += 1;
        await new Promise<void>((resolve) => (end = resolve));
      },
    });
    await addTo(stores, jobs, { id: "1", body: "" }, { id: "2", body: "" });
    jobs.start();
    await eventually(() => begun > 0);
    const drained = jobs.drain();
    end();
    expect(await drained).toEqual({ keys: 0, claims: 0 });
    expect(outcomes).toEqual(["done"]);
    jobs.start();
    await sleep(30);
    expect(begun).toBe(1);
    expect((await stores.work.read(queue, "2"))?.attempts).toBe(0);
  });

  test("aborts what takes longer, and says how many these were", async () => {
    const { stores } = openStores();
    const { outcomes } = heard();
    let isBegun = false;
    const jobs = queueOn(stores, {
      async atLeastOnce(_task, { signal }) {
        isBegun = true;
        await eventually(() => signal.aborted);
        signal.throwIfAborted();
      },
    });
    jobs.start();
    await addTo(stores, jobs, { id: "1", body: "" });
    await eventually(() => isBegun);
    expect(await jobs.drain({ timeoutMs: 10 })).toEqual({ keys: 1, claims: 0 });
    await eventually(() => outcomes.length > 0);
    expect((await stores.work.read(queue, "1"))?.failures[0]?.reason).toBe("the process ends");
  });

  test("gives back what a claim brings afterwards", async () => {
    const { stores } = openStores();
    let drained: Promise<unknown> | undefined;
    const work = changed(stores.work, {
      async claim(claim) {
        const tasks = await stores.work.claim(claim);
        drained ??= jobs.drain();
        return tasks;
      },
    });
    const jobs = queueOn(
      { ...stores, work },
      {
        atLeastOnce() {
          throw new Error("begun");
        },
      },
    );
    await addTo(stores, jobs, { id: "1", body: "" });
    jobs.start();
    await eventually(() => drained !== undefined);
    await drained;
    expect(await stores.work.read(queue, "1")).toMatchObject({ state: "open", attempts: 0 });
  });
});
