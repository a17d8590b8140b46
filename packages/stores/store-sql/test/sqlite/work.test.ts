import { afterTest, pause, testClock } from "@countersign/test-support/runs/after-test.ts";
import { steadyTest } from "@countersign/test-support/runs/steadily.ts";
import { createStores } from "@countersign/store-sql";
import { describe, expect, test } from "@jest/globals";
import { connect, openStores, drivers, openLibsql, temporaryFile } from "./connections.ts";
import { waitsForWriteLock } from "./lock-holder.ts";

const queue = "reports";
const claim = { queue, limit: 10, token: "mine", leaseMs: 60_000 } as const;
const task = { queue, id: "a", token: "mine" } as const;
const decision = { by: "anna", note: "why" } as const;

function platform(open = openLibsql, file = temporaryFile()) {
  const database = connect(file, open);
  const stores = openStores(database);
  const add = (...ids: readonly string[]) =>
    stores.transactions.run(
      (tx) =>
        void stores.work.add(
          tx,
          queue,
          ids.map((id) => ({ id, entity: "e", body: id })),
        ),
    );
  return { ...stores, file, database, add };
}

describe.each(drivers)("createStores().work, %s", (_driver, open) => {
  test("answers at once in a transaction, which is that of its connection alone", async () => {
    const { work, transactions, database, close } = platform(open);
    const other = connect(temporaryFile(), open);
    const steps: readonly ((tx: typeof database) => unknown)[] = [
      (tx) => work.add(tx, queue, [{ id: "a", body: "b" }]),
      (tx) => work.finish(tx, task),
      (tx) => work.advance(tx, { scope: "s", subject: "a", at: 1n }),
    ];
    for (const step of steps) {
      expect(() => step(database)).toThrow(/no transaction is open/);
      await expect(transactions.run(() => void step(other))).rejects.toThrow(TypeError);
    }
    const answers = await transactions.run((tx) => steps.map((step) => step(tx)));
    expect(answers).toEqual([[{ status: "added" }], false, true]);
    close();
    for (const step of steps) expect(() => step(database)).toThrow(/closed/);
  });

  test("lists the tasks of one add() in their order, however long that took", async () => {
    const { work, transactions, close } = platform(open);
    const ids = Array.from({ length: 300 }, (_none, index) => `task ${index}`);
    await transactions.run(
      (tx) =>
        void work.add(
          tx,
          queue,
          ids.map((id) => ({ id, body: id })),
        ),
    );
    const { tasks } = await work.list({ queue, limit: 300 });
    expect(tasks.map(({ id }) => id)).toEqual(ids);
    close();
  });

  test("refuses every other step inside a transaction of the caller and after close", async () => {
    const { work, database, close } = platform(open);
    const calls: readonly (() => Promise<unknown>)[] = [
      () => work.claim(claim),
      () => work.extend([task], 1),
      () => work.fail(task, { reason: "why", retryInMs: 0 }),
      () => work.giveBack([task], 0),
      () => work.summaries(),
      () => work.read(queue, "a"),
      () => work.list({ queue, limit: 1 }),
      () => work.retry(queue, { deadSinceMs: 0 }),
      () => work.discard(queue, ["a"], decision),
      () => work.pause(queue, decision),
      () => work.resume(queue),
      () => work.prune(),
    ];
    database.exec("BEGIN");
    for (const call of calls) await expect(call()).rejects.toThrow(/transaction is open/);
    database.exec("ROLLBACK");
    close();
    for (const call of calls) await expect(call()).rejects.toThrow(/closed/);
  });

  test("leaves the connection usable where the caller's transaction cannot get the write lock", async () => {
    const { work, database, file, transactions } = platform(open);
    const other = connect(file, open);
    database.exec("PRAGMA busy_timeout = 0");
    other.exec("BEGIN IMMEDIATE");
    database.exec("BEGIN");
    const adding = () => work.add(database, queue, [{ id: "a", body: "b" }]);
    expect(adding).toThrow(expect.objectContaining({ message: expect.stringMatching(/locked/) }));
    database.exec("ROLLBACK");
    other.exec("COMMIT");
    // Before the same statement runs again, which would reset it.
    expect(await transactions.run(() => "committed")).toBe("committed");
    await transactions.run(() => void adding());
    expect(await work.read(queue, "a")).toMatchObject({ state: "open" });
  });

  steadyTest("waits for the write lock of another process while the event loop goes on", async () => {
    const { work, add, file } = platform(open);
    await add("a");
    expect(await waitsForWriteLock(file, () => work.claim(claim))).toMatchObject([{ id: "a", attempt: 1 }]);
  });

  test("remembers a done task as long as the process that ended it says: a command that prunes knows no retention", async () => {
    const { now, advance } = testClock();
    const database = connect(temporaryFile(), open);
    const dayMs = 86_400_000;
    const { work, transactions } = openStores(database, { now, taskRetentionMs: 60 * dayMs });
    const command = openStores(database, { now }).work;
    await transactions.run((tx) => void work.add(tx, queue, [{ id: "a", body: "" }]));
    await work.claim(claim);
    await transactions.run((tx) => work.finish(tx, task));
    advance(60 * dayMs - 1);
    expect(await command.prune()).toBe(0);
    advance(1);
    expect(await command.prune()).toBe(1);
  });

  test("keeps a lane while it has open tasks; the next claim removes it", async () => {
    const { work, add, transactions, database } = platform(open);
    const lanes = () => database.prepare("SELECT lane FROM countersign_lanes").all().length;
    await add("a", "b");
    expect(lanes()).toBe(1);
    await work.claim(claim);
    await transactions.run((tx) => work.finish(tx, task));
    await work.claim(claim);
    await work.fail({ ...task, id: "b" }, { reason: "why", retryInMs: undefined });
    expect(await work.claim(claim)).toEqual([]);
    expect(lanes()).toBe(0);
    await work.retry(queue, { ids: ["b"] });
    expect(lanes()).toBe(1);
  });

  test("reads no table of tasks or lanes from end to end, but for summaries", async () => {
    const database = connect(temporaryFile(), open);
    const prepared = new Set<string>();
    const stores = createStores({
      pruneIntervalMs: 0,
      database: {
        exec: (sql) => database.exec(sql),
        prepare(sql) {
          prepared.add(sql);
          return database.prepare(sql);
        },
        get inTransaction() {
          return database.inTransaction ?? database.isTransaction;
        },
      },
    });
    afterTest(() => stores.close());
    const { work, transactions } = stores;
    const added = ["a", "b", "c"].map((id) => ({ id, entity: id, body: id }));
    await transactions.run((tx) => void work.add(tx, queue, added));
    await transactions.run((tx) => void work.add(tx, queue, added));
    const tasks = await work.claim(claim);
    expect(tasks).toHaveLength(3);
    await work.extend([...tasks, { ...task, token: "other" }], 60_000);
    await transactions.run((tx) => work.finish(tx, { ...task, id: "a" }));
    await work.fail({ ...task, id: "b" }, { reason: "why", retryInMs: undefined });
    await work.giveBack([{ ...task, id: "c" }], 60_000);
    await work.claim(claim);
    await work.retry(queue, { deadSinceMs: 0 });
    await work.claim({ ...claim, leaseMs: 1 });
    await pause(5);
    expect(await work.claim(claim)).toHaveLength(1);
    await work.fail({ ...task, id: "b" }, { reason: "why", retryInMs: undefined });
    await work.discard(queue, ["b"], decision);
    await work.list({ queue, limit: 1 });
    await work.list({ queue, state: "open", limit: 1 });
    await work.read(queue, "a");
    const steps = [...prepared].filter((sql) => /_(tasks|lanes)"/.test(sql) && !/WHERE 0/.test(sql));
    expect(steps.length).toBeGreaterThan(20);
    const scans = steps.flatMap((sql) => {
      const values = Array.from({ length: sql.split("?").length - 1 }, () => 0);
      const plan = database.prepare(`EXPLAIN QUERY PLAN ${sql}`).all(...values) as { detail: string }[];
      // A page of all states is sorted out of one of each state; the lanes that a claim has found are walked over.
      const isSorted = /AS dead_tasks|AS head_due_us/.test(sql);
      const reads = isSorted ? /^SCAN (?!\w+_tasks$|lane$)/ : /^SCAN (?!.*CONSTANT)|TEMP B-TREE/;
      return plan.filter(({ detail }) => reads.test(detail)).map(({ detail }) => `${detail}: ${sql}`);
    });
    expect(scans).toEqual([]);
  });
});

test("works on libsql with integers as bigint", async () => {
  const { work, transactions, add, database } = platform();
  (database as unknown as { defaultSafeIntegers(): void }).defaultSafeIntegers();
  await add("a", "b");
  const addedAtMs: unknown = expect.any(Number);
  expect(await work.claim(claim)).toEqual([{ ...task, entity: "e", body: "a", attempt: 1, addedAtMs }]);
  expect(await work.extend([task], 60_000)).toEqual(["a"]);
  expect(await transactions.run((tx) => work.finish(tx, task))).toBe(true);
  const { cursor } = await work.list({ queue, limit: 1 });
  expect((await work.list({ queue, limit: 1, cursor })).tasks).toMatchObject([{ id: "b", attempts: 0 }]);
  expect(await work.summaries()).toMatchObject([{ open: 1, done: 1, oldestOpenMs: expect.any(Number) }]);
});
