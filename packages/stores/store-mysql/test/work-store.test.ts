import { randomUUID } from "node:crypto";
import { expect, test } from "@jest/globals";
import type { NewTask, TaskClaim } from "@countersign/work";
import { testClock } from "@countersign/test-support/runs/after-test.ts";
import { describeOnMysql } from "@countersign/test-support/servers/engines.ts";
import type { RowDataPacket } from "mysql2/promise";
import { newStores, untilBlocked } from "./connections.ts";

type Stores = Awaited<ReturnType<typeof newStores>>;

const queue = "q";

function add({ database, work }: Stores, ...tasks: readonly (string | NewTask)[]) {
  return database.run((tx) => work.add(tx, queue, tasks.map(taskOf)));
}

function taskOf(task: string | NewTask): NewTask {
  return typeof task === "string" ? { id: task, entity: "e", body: `of ${task}` } : task;
}

function wants(more: Partial<TaskClaim> = {}): TaskClaim {
  return { queue, limit: 10, token: randomUUID(), leaseMs: 60_000, ...more };
}

async function claimIds({ work }: Stores, more?: Partial<TaskClaim>): Promise<string[]> {
  return (await work.claim(wants(more))).map(({ id }) => id);
}

async function lanesOf({ pool, table }: Stores): Promise<number> {
  const [[row]] = await pool.query<RowDataPacket[]>(`SELECT COUNT(*) AS lanes FROM ${table}_lanes`);
  return Number(row?.["lanes"]);
}

/** Runs the tasks until none is left. */
async function drain(stores: Stores, limit = 10): Promise<string[]> {
  const { work, database } = stores;
  const ids: string[] = [];
  for (;;) {
    const tasks = await work.claim(wants({ limit }));
    if (tasks.length === 0) return ids;
    for (const task of tasks) {
      ids.push(task.id);
      expect(await database.run((tx) => work.finish(tx, task))).toBe(true);
    }
  }
}

describeOnMysql("the table of work", () => {
  test("runs the tasks of an entity in their order, those of others meanwhile", async () => {
    const stores = await newStores();
    expect(await add(stores, "a", "b")).toEqual([{ status: "added" }, { status: "added" }]);
    await add(stores, "c", { id: "lone", body: "" }, { id: "other", entity: "f", body: "" });
    expect(await add(stores, "a")).toEqual([{ status: "known", body: "of a" }]);
    const first = await stores.work.claim(wants());
    expect(first.map(({ id }) => id)).toEqual(expect.arrayContaining(["a", "lone", "other"]));
    expect(await claimIds(stores)).toEqual([]);
    const a = first.find(({ id }) => id === "a");
    if (a === undefined) throw new Error("no a");
    expect(a).toMatchObject({ entity: "e", body: "of a", attempt: 1, queue });
    expect(await stores.database.run((tx) => stores.work.finish(tx, { ...a, token: "stale" }))).toBe(false);
    expect(await stores.database.run((tx) => stores.work.finish(tx, a))).toBe(true);
    expect(await stores.database.run((tx) => stores.work.finish(tx, a))).toBe(false);
    expect(await drain(stores)).toEqual(["b", "c"]);
    expect(await stores.work.read(queue, "a")).toMatchObject({
      state: "done",
      attempts: 1,
      dueAtMs: undefined,
    });
  });

  test("removes a lane without tasks, and keeps one that an adder has locked meanwhile", async () => {
    const stores = await newStores();
    const { pool } = stores;
    await add(stores, "a");
    expect(await drain(stores)).toEqual(["a"]);
    expect(await lanesOf(stores)).toBe(0);
    await add(stores, "a");
    const adder = await pool.getConnection();
    await adder.query("START TRANSACTION");
    await stores.work.add(adder, queue, [taskOf("b")]);
    expect(await claimIds(stores)).toEqual([]);
    await adder.query("COMMIT");
    adder.release();
    expect(await drain(stores)).toEqual(["b"]);
  });

  test("loses no task that is added while its lane is removed, or ends", async () => {
    const stores = await newStores();
    const { database, work, pool, table } = stores;
    await add(stores, "a");
    const [task] = await work.claim(wants());
    if (task === undefined) throw new Error("no task");
    const ender = await pool.getConnection();
    await ender.query("START TRANSACTION");
    expect(await work.finish(ender, task)).toBe(true);
    const added = add(stores, "b");
    await untilBlocked(pool, table);
    await ender.query("COMMIT");
    ender.release();
    await added;
    // The other way round: the adder is first, and the end waits for it.
    const [next] = await work.claim(wants());
    if (next === undefined) throw new Error("no task");
    const adder = await pool.getConnection();
    await adder.query("START TRANSACTION");
    await adder.query("SELECT 1");
    await work.add(adder, queue, [taskOf("c")]);
    const finished = database.run((tx) => work.finish(tx, next));
    await untilBlocked(pool, table);
    await adder.query("COMMIT");
    adder.release();
    expect(await finished).toBe(true);
    expect(await drain(stores)).toEqual(["c"]);
  });

  test("renews a lease while an open transaction adds to its entity, and lets nobody take it over", async () => {
    const clock = testClock();
    const stores = await newStores({ now: clock.now, lockTimeoutMs: 60_000 });
    const { database, pool, work } = stores;
    await add(stores, "a", { id: "lone", body: "" });
    const tasks = await work.claim(wants({ leaseMs: 1_000 }));
    const adder = await pool.getConnection();
    await adder.query("START TRANSACTION");
    await work.add(adder, queue, [taskOf("b")]);
    expect(await work.extend(tasks, 60_000)).toEqual(tasks.map(({ id }) => id));
    clock.advance(1_001);
    await adder.query("COMMIT");
    adder.release();
    expect(await claimIds(stores)).toEqual([]);
    expect(await work.summaries()).toMatchObject([{ open: 3, running: 2 }]);
    // Beside leases that are looked at in vain, a claim has its number of tasks.
    clock.advance(60_000);
    expect(await work.extend(tasks, 60_000)).toHaveLength(2);
    await add(stores, { id: "new", body: "" });
    expect(await claimIds(stores, { limit: 1 })).toEqual(["new"]);
    for (const task of tasks) expect(await database.run((tx) => work.finish(tx, task))).toBe(true);
    expect(await claimIds(stores)).toEqual(["b"]);
  });

  test("claims nothing that did not commit, and does not wait for it", async () => {
    const stores = await newStores();
    const { pool, work } = stores;
    await add(stores, { id: "x", body: "" });
    const adder = await pool.getConnection();
    await adder.query("START TRANSACTION");
    await work.add(adder, queue, [
      { id: "y", body: "" },
      { id: "a", entity: "e", body: "" },
    ]);
    expect(await claimIds(stores)).toEqual(["x"]);
    await adder.query("ROLLBACK");
    adder.release();
    expect(await claimIds(stores)).toEqual([]);
    expect(await add(stores, { id: "y", body: "new" })).toEqual([{ status: "added" }]);
  });

  test("adds and ends nothing outside of a transaction", async () => {
    const stores = await newStores();
    const { pool, work } = stores;
    await add(stores, "a");
    const [task] = await work.claim(wants());
    const connection = await pool.getConnection();
    await expect(work.add(connection, queue, [taskOf("b")])).rejects.toThrow(/while it is open/);
    if (task === undefined) throw new Error("no task");
    await expect(work.finish(connection, task)).rejects.toThrow(/while it is open/);
    const mark = { scope: "s", subject: "x", at: 1n };
    await expect(work.advance(connection, mark)).rejects.toThrow(/while it is open/);
    connection.release();
    expect(await work.read(queue, "b")).toBeUndefined();
    expect(await work.read(queue, "a")).toMatchObject({ state: "open" });
    expect(await stores.database.run((tx) => work.advance(tx, { ...mark, at: -1n }))).toBe(true);
  });

  test("takes a task over when its lease has ended, and tells of it", async () => {
    const clock = testClock();
    const stores = await newStores({ now: clock.now });
    const { work } = stores;
    await add(stores, "a", "b");
    const [first] = await work.claim(wants({ leaseMs: 1_000 }));
    if (first === undefined) throw new Error("no task");
    clock.advance(900);
    expect(await work.extend([first, { ...first, token: "stale" }, { ...first, id: "b" }], 1_000)).toEqual([
      "a",
    ]);
    clock.advance(900);
    expect(await claimIds(stores)).toEqual([]);
    clock.advance(200);
    const [second] = await work.claim(wants());
    expect(second).toMatchObject({ id: "a", attempt: 2 });
    expect(await work.extend([first], 1_000)).toEqual([]);
    expect(await work.fail(first, { reason: "late", retryInMs: 0 })).toBe(false);
    expect(await work.read(queue, "a")).toMatchObject({
      failures: [{ attempt: 1, reason: "lease-expired" }],
    });
  });

  test("fails, gives back, dies, and runs again by decision", async () => {
    const clock = testClock();
    const stores = await newStores({ now: clock.now });
    const { work } = stores;
    const claimOne = async () => {
      const [task] = await work.claim(wants());
      if (task === undefined) throw new Error("no task");
      return task;
    };
    await add(stores, "a", "b");
    expect(await work.fail(await claimOne(), { reason: "no\0", retryInMs: 1_000 })).toBe(true);
    expect(await claimIds(stores)).toEqual([]);
    clock.advance(1_000);
    await work.giveBack([await claimOne()], 500);
    expect(await work.read(queue, "a")).toMatchObject({ attempts: 1 });
    expect(await claimIds(stores)).toEqual([]);
    clock.advance(500);
    expect(await work.fail(await claimOne(), { reason: "dead", retryInMs: undefined })).toBe(true);
    expect(await work.read(queue, "a")).toMatchObject({ state: "dead", attempts: 2 });
    expect(await work.retry(queue, { deadSinceMs: clock.now() + 1 })).toBe(0);
    expect(await work.retry(queue, { deadSinceMs: clock.now() })).toBe(1);
    const again = await claimOne();
    expect(again).toMatchObject({ id: "a", attempt: 1 });
    expect(await work.fail(again, { reason: "dead", retryInMs: undefined })).toBe(true);
    expect(await work.discard(queue, ["a", "b", "none"], { by: "me", note: "over" })).toBe(1);
    expect(await work.read(queue, "a")).toMatchObject({
      state: "done",
      failures: [
        { reason: "no\0" },
        { reason: "dead" },
        { reason: "dead" },
        { reason: "discarded by me: over" },
      ],
    });
    expect(await drain(stores)).toEqual(["b"]);
    clock.advance(7 * 86_400_000);
    expect(await work.prune()).toBe(2);
    expect(await work.list({ queue, limit: 10 })).toEqual({ tasks: [], cursor: undefined });
  });

  test("waits for the head's delay, also in a lane that a known task has left behind", async () => {
    const clock = testClock();
    const stores = await newStores({ now: clock.now });
    await add(stores, { id: "old", entity: "e", body: "" });
    expect(await drain(stores)).toEqual(["old"]);
    await add(stores, { id: "old", entity: "e", body: "", delayMs: 99_000 });
    await add(stores, { id: "slow", entity: "e", body: "", delayMs: 1_000 }, "b");
    expect(await claimIds(stores)).toEqual([]);
    expect(await stores.work.read(queue, "slow")).toMatchObject({ dueAtMs: clock.now() + 1_000 });
    clock.advance(1_000);
    expect(await drain(stores)).toEqual(["slow", "b"]);
  });

  test("shows queues, pages of tasks, and pauses", async () => {
    const stores = await newStores();
    const { work } = stores;
    const ids = Array.from({ length: 7 }, (_, index) => `t${index}`);
    await add(stores, ...ids);
    await work.pause(queue, { by: "me", note: "note \ud800" });
    expect(await claimIds(stores)).toEqual([]);
    expect(await work.summaries()).toEqual([
      {
        queue,
        paused: { by: "me", note: "note \ud800", atMs: expect.any(Number) },
        open: 7,
        running: 0,
        dead: 0,
        done: 0,
        oldestOpenMs: expect.any(Number),
      },
    ]);
    expect(await work.resume(queue)).toBe(true);
    expect(await work.resume(queue)).toBe(false);
    const [task] = await work.claim(wants());
    if (task === undefined) throw new Error("no task");
    expect(await work.summaries()).toMatchObject([{ paused: undefined, running: 1 }]);
    const listed: string[] = [];
    let cursor: string | undefined;
    do {
      const page = await work.list({ queue, limit: 3, cursor, state: "open" });
      listed.push(...page.tasks.map(({ id }) => id));
      cursor = page.cursor;
    } while (cursor !== undefined);
    expect(listed).toEqual(ids);
    await expect(work.list({ queue, limit: 3, cursor: "x" })).rejects.toThrow(TypeError);
  });

  test("marks the newest of a subject", async () => {
    const { work, database } = await newStores();
    const advance = (at: bigint, subject = "s") =>
      database.run((tx) => work.advance(tx, { scope: "x", subject, at }));
    expect(await advance(5n)).toBe(true);
    expect(await advance(4n)).toBe(false);
    expect(await advance(5n)).toBe(true);
    expect(await advance(6n)).toBe(true);
    expect(await advance(-6n, "S")).toBe(true);
  });

  test("is not claimed by two", async () => {
    const stores = await newStores({}, { connectionLimit: 20 });
    const ids = Array.from({ length: 200 }, (_, index) => `t${index}`);
    await add(stores, ...ids.map((id, index) => ({ id, body: "", entity: `e${index % 40}` })));
    const run = await Promise.all(Array.from({ length: 8 }, () => drain(stores, 5)));
    const rest = await drain(stores);
    expect(new Set([...run.flat(), ...rest])).toEqual(new Set(ids));
    expect([...run.flat(), ...rest]).toHaveLength(ids.length);
  });
});
