import { eventually } from "@countersign/test-support/runs/eventually.ts";
import { createTaskQueue, TaskError } from "@countersign/idempotency/work";
import { describe, expect, test } from "@jest/globals";
import {
  addTo,
  attempted,
  heard,
  notesOf,
  openStores,
  queue,
  queueOn,
  writeNote,
  type Db,
} from "./queues.ts";

type TaskQueueOptions = Parameters<typeof createTaskQueue<Db, "sync">>[0];

describe("createTaskQueue() options", () => {
  const exactlyOnce = (): void => {};
  test.each<[string, object, RegExp]>([
    ["no stores", { stores: undefined, exactlyOnce }, /option stores must be stores of your database/],
    [
      "stores without a table of work",
      { stores: "no work", exactlyOnce },
      /option stores has no table of work/,
    ],
    ["a queue's name with a space", { queue: "a b", exactlyOnce }, /option queue must be 1 to 64 of a-z/],
    ["no function", {}, /needs either exactlyOnce or atLeastOnce/],
    ["both functions", { exactlyOnce, atLeastOnce: exactlyOnce }, /needs either exactlyOnce or atLeastOnce/],
    ["an async function on SQLite", { exactlyOnce: async () => {} }, /option exactlyOnce is async/],
    [
      "a lease too short for its renewal",
      { exactlyOnce, leaseMs: 1_000 },
      /storeTimeoutMs must be at most half of leaseMs/,
    ],
    [
      "a shrinking backoff",
      { exactlyOnce, backoffMs: 10, maxBackoffMs: 9 },
      /maxBackoffMs must be at least backoffMs/,
    ],
    ["a misspelt option", { exactlyOnce, retries: 3 }, /unknown option retries/],
  ])("refuses %s", (_name, given, message) => {
    const { stores } = openStores();
    const wrong = "stores" in given && given.stores === "no work" ? { ...stores, work: undefined } : stores;
    const options = {
      queue,
      ...given,
      stores: "stores" in given && given.stores === undefined ? undefined : wrong,
    };
    const create = (): unknown => createTaskQueue(options as unknown as TaskQueueOptions);
    expect(create).toThrow(TypeError);
    expect(create).toThrow(message);
  });
});

test.each([-1, 1.5, Number.NaN, 31_536_000_001])(
  "a TaskError refuses to be retried in %p ms",
  (retryInMs) => {
    expect(() => new TaskError("later", { retryInMs })).toThrow(TypeError);
  },
);

test("a task runs after the commit that added it, in the transaction that ends it", async () => {
  const { stores, db } = openStores();
  const { outcomes } = heard();
  const jobs = queueOn(stores, { exactlyOnce: ({ body }, { tx }) => writeNote(tx, body) });
  jobs.start();
  jobs.start();
  const rolledBack = stores.transactions.run((tx) => {
    jobs.add(tx, { id: "never", body: "never" });
    throw new Error("refused");
  });
  await expect(rolledBack).rejects.toThrow("refused");
  await addTo(stores, jobs, { id: "1", body: "one" });
  await eventually(() => outcomes.length > 0);
  expect(notesOf(db)).toEqual(["one"]);
  expect(await stores.work.read(queue, "1")).toMatchObject({ state: "done", attempts: 1, failures: [] });
  expect(await stores.work.read(queue, "never")).toBeUndefined();
});

test("a throw rolls back what a task wrote, and its reasons stay on the record", async () => {
  let attempts = 0;
  const exactlyOnce: TaskQueueOptions["exactlyOnce"] = (_task, { tx }) => {
    attempts += 1;
    writeNote(tx, `attempt ${attempts}`);
    if (attempts < 3) throw new Error(`no ${attempts}`);
  };
  const { db, codes, outcomes, record } = await attempted({ exactlyOnce }, { until: "done" });
  expect(outcomes).toEqual(["failed", "failed", "done"]);
  expect(codes).toEqual(["task-failed", "task-failed"]);
  expect(notesOf(db)).toEqual(["attempt 3"]);
  expect(record?.failures.map(({ attempt, reason }) => [attempt, reason])).toEqual([
    [1, "no 1"],
    [2, "no 2"],
  ]);
});

test("a promise in a synchronous transaction ends no task", async () => {
  const late = (tx: Db): Promise<void> => Promise.resolve().then(() => writeNote(tx, "late"));
  const exactlyOnce = (_task: unknown, { tx }: { tx: Db }): unknown => late(tx);
  const given = { exactlyOnce: exactlyOnce as () => void, maxAttempts: 1 };
  const { db, outcomes, record } = await attempted(given);
  expect(outcomes).toEqual(["dead"]);
  expect(record?.failures[0]?.reason).toMatch(/promise/);
  expect(notesOf(db).length).toBeLessThan(2);
});

describe("what acts outside of the database", () => {
  test("ends when it returns", async () => {
    const { record } = await attempted({ atLeastOnce: () => Promise.resolve() });
    expect(record?.state).toBe("done");
  });

  const writes = (tx: Db): void => writeNote(tx, "paid");
  const broken = (): never => {
    throw new Error("no ledger");
  };
  test.each<[string, NonNullable<TaskQueueOptions["atLeastOnce"]>, string, string[]]>([
    ["commit() writes with the end", async (_task, { commit }) => commit(writes), "done", ["paid"]],
    [
      "a commit() that nobody awaits still ends it",
      (_task, { commit }) => void commit(writes),
      "done",
      ["paid"],
    ],
    [
      "a second commit() is refused",
      async (_task, { commit }) => (await commit(writes), await commit(writes)),
      "done",
      ["paid"],
    ],
    [
      "a throw after commit() changes nothing",
      async (_task, { commit }) => (await commit(writes), broken()),
      "done",
      ["paid"],
    ],
    ["a commit() that failed fails the attempt", async (_task, { commit }) => commit(broken), "dead", []],
    [
      "so does one whose rejection was swallowed",
      async (_task, { commit }) => commit(broken).catch(() => {}),
      "dead",
      [],
    ],
  ])("%s", async (_name, atLeastOnce, outcome, notes) => {
    const { db, outcomes, record } = await attempted({ atLeastOnce, maxAttempts: 1 });
    expect(outcomes).toEqual([outcome]);
    expect(record?.state).toBe(outcome);
    expect(notesOf(db)).toEqual(notes);
  });
});
