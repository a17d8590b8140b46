import { randomUUID } from "node:crypto";
import { expect, test } from "@jest/globals";
import type { NewTask, TaskClaim } from "@countersign/idempotency/work";
import { testClock } from "@countersign/test-support/runs/after-test.ts";
import { describeOnMysql } from "@countersign/test-support/servers/engines.ts";
import type { RowDataPacket } from "mysql2/promise";
import { newStores } from "./connections.ts";

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
});
