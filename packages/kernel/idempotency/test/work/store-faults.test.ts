import { eventually, sleep } from "@countersign/test-support/runs/eventually.ts";
import { describe, expect, test } from "@jest/globals";
import { addTo, attempted, changed, heard, lost, openStores, queue, queueOn, type Stores } from "./queues.ts";

const failing = (): never => {
  throw new Error("no");
};

describe("where the store fails", () => {
  test("a worker that cannot claim tries again", async () => {
    const { stores } = openStores();
    const { codes, outcomes } = heard();
    let isDown = true;
    const { claim } = stores.work;
    const work = changed(stores.work, {
      claim: (wanted) => (isDown ? lost() : claim.call(stores.work, wanted)),
    });
    const jobs = queueOn({ ...stores, work }, { atLeastOnce: () => {} });
    jobs.start();
    await addTo(stores, jobs, { id: "1", body: "" });
    await eventually(() => codes.length > 1);
    expect(new Set(codes)).toEqual(new Set(["work-store-failed"]));
    isDown = false;
    await eventually(() => outcomes.includes("done"));
  });

  test("an attempt whose end cannot be written is left to its lease", async () => {
    const { codes, record } = await attempted(({ stores }) => ({
      stores: { ...stores, work: changed(stores.work, { fail: lost }) },
      atLeastOnce: failing,
    }));
    expect(codes).toEqual(["work-store-failed"]);
    expect(record).toMatchObject({ state: "open", attempts: 1, failures: [] });
  });

  test("what a claim brings too late is given back, and runs as if it had not been claimed", async () => {
    const { stores } = openStores();
    const { codes, outcomes } = heard();
    let isSlow = true;
    const work = changed(stores.work, {
      async claim(claim) {
        const tasks = await stores.work.claim(claim);
        const { length } = tasks;
        if (isSlow && length > 0) {
          isSlow = false;
          await sleep(700);
        }
        return tasks;
      },
    });
    const attempts: number[] = [];
    const jobs = queueOn(
      { ...stores, work },
      {
        leaseMs: 1_000,
        storeTimeoutMs: 500,
        atLeastOnce: (_task, { attempt }) => void attempts.push(attempt),
      },
    );
    await addTo(stores, jobs, { id: "1", body: "" }, { id: "2", body: "" });
    jobs.start();
    // By a clock that stands still: no lease ends.
    await eventually(() => outcomes.length === 2);
    expect([codes, attempts]).toEqual([["work-store-failed"], [1, 1]]);
  });

  test("drain() awaits a late claim, and gives back what it brings", async () => {
    const { stores } = openStores();
    const { codes } = heard();
    const work = changed(stores.work, {
      async claim(claim) {
        const tasks = await stores.work.claim(claim);
        await sleep(900);
        return tasks;
      },
    });
    const jobs = queueOn(
      { ...stores, work },
      { leaseMs: 1_000, storeTimeoutMs: 500, backoffMs: 60_000, maxBackoffMs: 60_000, atLeastOnce: () => {} },
    );
    await addTo(stores, jobs, { id: "1", body: "" });
    jobs.start();
    await eventually(() => codes.length > 0);
    await jobs.drain();
    expect(await stores.work.read(queue, "1")).toMatchObject({ state: "open", attempts: 0 });
  });

  test("a lease that cannot be renewed aborts before it ends", async () => {
    let reason: unknown;
    const { codes } = await attempted(({ stores }) => ({
      stores: { ...stores, work: changed(stores.work, { extend: lost }) },
      leaseMs: 1_000,
      storeTimeoutMs: 500,
      async atLeastOnce(_task, { signal }) {
        await eventually(() => signal.aborted);
        reason = signal.reason;
      },
    }));
    expect(String(reason)).toBe("Error: the task's lease could not be renewed");
    expect(codes).toContain("work-store-failed");
  });
});

type Fail = Stores["work"]["fail"];

describe("a dead letter is told of once, although its end", () => {
  /** What fail() does instead, by the number of the call from 1; nothing: as it is. */
  type Does = (call: number, fail: () => ReturnType<Fail>) => ReturnType<Fail> | undefined;

  const late = async (fail: () => ReturnType<Fail>): Promise<boolean> => {
    const isOurs = await fail();
    await sleep(700);
    return isOurs;
  };

  test.each<[string, Does, number]>([
    ["was written, and answered too late", (call, fail) => (call === 1 ? late(fail) : undefined), 0],
    ["was written, and its reply was lost", (call, fail) => (call === 1 ? fail().then(lost) : undefined), 0],
    ["could not be written at first", (call) => (call < 3 ? lost() : undefined), 0],
    ["was written, and cannot be read", (call, fail) => (call === 1 ? fail().then(lost) : undefined), 3],
  ])("%s", async (_how, does, unreadable) => {
    const { stores } = openStores();
    const { codes } = heard();
    const told: unknown[] = [];
    const { fail, read } = stores.work;
    let [fails, reads] = [0, 0];
    const work = changed(stores.work, {
      fail(...given) {
        fails += 1;
        const write = () => fail.apply(stores.work, given);
        return does(fails, write) ?? write();
      },
      read(...given) {
        reads += 1;
        return reads <= unreadable ? lost() : read.apply(stores.work, given);
      },
    });
    const jobs = queueOn(
      { ...stores, work },
      {
        leaseMs: 1_000,
        storeTimeoutMs: 500,
        maxAttempts: 1,
        atLeastOnce: failing,
        onFailure: (task, error, isDead) => void told.push([task.id, String(error), isDead]),
      },
    );
    jobs.start();
    await addTo(stores, jobs, { id: "1", body: "" });
    await eventually(() => codes.includes("task-dead"));
    await jobs.drain();
    expect(codes).toEqual(["work-store-failed", "task-dead"]);
    expect(told).toEqual([["1", "Error: no", true]]);
    expect(await stores.work.read(queue, "1")).toMatchObject({ state: "dead", attempts: 1 });
  });
});

test("an end that comes too late to be written is not told of: another worker has the task", async () => {
  const { stores, clock } = openStores();
  const { codes } = heard();
  const told: unknown[] = [];
  let isDown = true;
  const { fail } = stores.work;
  const work = changed(stores.work, {
    fail: (...given) => (isDown ? lost() : fail.apply(stores.work, given)),
  });
  const jobs = queueOn(
    { ...stores, work },
    {
      maxAttempts: 1,
      atLeastOnce: failing,
      onFailure: () => void told.push("told"),
    },
  );
  await addTo(stores, jobs, { id: "1", body: "" });
  jobs.start();
  await eventually(() => codes.length > 0);
  await stores.work.pause(queue, { by: "operator", note: "another worker alone" });
  clock.advance(60_000);
  await stores.work.resume(queue);
  const [taken] = await stores.work.claim({ queue, limit: 1, token: "another", leaseMs: 60_000 });
  expect(taken).toMatchObject({ attempt: 2 });
  isDown = false;
  await eventually(() => codes.includes("task-gone"));
  expect([codes, told]).toEqual([["work-store-failed", "task-gone"], []]);
});

test("drain() writes once more what could not be written, and tells of it", async () => {
  const { stores } = openStores();
  const { codes } = heard();
  let isDown = true;
  const { fail } = stores.work;
  const work = changed(stores.work, {
    fail: (...given) => (isDown ? lost() : fail.apply(stores.work, given)),
  });
  const jobs = queueOn(
    { ...stores, work },
    { maxAttempts: 1, backoffMs: 60_000, maxBackoffMs: 60_000, atLeastOnce: failing },
  );
  await addTo(stores, jobs, { id: "1", body: "" });
  jobs.start();
  await eventually(() => codes.length > 0);
  isDown = false;
  await jobs.drain();
  expect(codes).toEqual(["work-store-failed", "task-dead"]);
});
