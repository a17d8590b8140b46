import { fromPg } from "@countersign/store-sql/pg";
import { describe, expect, test } from "@jest/globals";
import { pause } from "@countersign/test-support/runs/after-test.ts";
import { describeOnPostgres } from "@countersign/test-support/servers/engines.ts";
import { connectClient, connectPool, untilBlocked } from "./connections.ts";
import { libraries } from "./payouts.ts";
import { newWork, queue, taskClaim, taskOf } from "./tasks.ts";

describeOnPostgres("tasks beside an open transaction", () => {
  describe.each(libraries)("with %s", (_library, as) => {
    const setUp = () => newWork({ database: as(fromPg(connectPool({ max: 20 }))) });

    test("are added by two that name the same entities in opposite order", async () => {
      const { work, pool, schema, open, addAll, claimAll } = await setUp();
      const first = await open((tx) => work.add(tx, queue, [taskOf("1@a"), taskOf("2@b")]));
      const second = addAll("3@b", "4@a");
      await untilBlocked(pool, schema);
      await first.commit();
      expect(await second).toEqual(["added", "added"]);
      expect(new Set(await claimAll())).toEqual(new Set(["1", "2"]));
    });

    test("are added by two that name the same ids in opposite order, of other entities", async () => {
      const { work, pool, schema, open, addAll, claimAll } = await setUp();
      const first = await open((tx) => work.add(tx, queue, [taskOf("1@a"), taskOf("2@b")]));
      const second = addAll("2@c", "1@d");
      await untilBlocked(pool, schema);
      await first.commit();
      expect(await second).toEqual(["known", "known"]);
      expect(await claimAll()).toHaveLength(2);
      // A claim removes the lanes that got nothing.
      const { rows } = await pool.query(`SELECT lane FROM ${schema}.countersign_lanes ORDER BY lane`);
      expect(rows).toEqual([{ lane: "ea" }, { lane: "eb" }]);
    });

    test("that finishes one past its lease go to nobody, unless it rolls back", async () => {
      const { work, open, addAll, claimAll } = await setUp();
      await addAll("1");
      const [task] = await work.claim(taskClaim({ leaseMs: 1 }));
      await pause(5);
      const finishing = await open((tx) => work.finish(tx, task!));
      expect(finishing.result).toBe(true);
      expect(await claimAll()).toEqual([]);
      await finishing.rollBack();
      expect(await claimAll()).toEqual(["1"]);
    });
  });

  test("that adds to their entity are renewed without a wait, and not taken over once their first lease ends", async () => {
    const { work, open, addAll, claimAll, finishAlone } = await newWork({ lockTimeoutMs: 60_000 });
    await addAll("1@a");
    await addAll("2");
    const tasks = await work.claim(taskClaim({ leaseMs: 50 }));
    const adding = await open((tx) => work.add(tx, queue, [taskOf("3@a")]));
    expect(await work.extend(tasks, 60_000)).toEqual(["1", "2"]);
    await pause(60);
    await adding.commit();
    expect(await claimAll()).toEqual([]);
    expect(await work.summaries()).toMatchObject([{ open: 3, running: 2 }]);
    for (const task of tasks) expect(await finishAlone(task)).toBe(true);
    expect(await claimAll()).toEqual(["3"]);
  });

  test("that finishes one are extended without a wait", async () => {
    const { work, open, addAll } = await newWork({ lockTimeoutMs: 60_000 });
    await addAll("1");
    await addAll("2");
    const tasks = await work.claim(taskClaim({ leaseMs: 200 }));
    const finishing = await open((tx) => work.finish(tx, tasks[0]!));
    expect(await work.extend(tasks, 60_000)).toEqual(["1", "2"]);
    await finishing.commit();
    expect(await work.extend(tasks, 60_000)).toEqual(["2"]);
  });

  test("keep nobody waiting for longer than lockTimeoutMs", async () => {
    const { work, open, addAll } = await newWork({ lockTimeoutMs: 50 });
    await addAll("1@a");
    const [task] = await work.claim(taskClaim());
    await open((tx) => work.add(tx, queue, [taskOf("2@a")]));
    await expect(work.fail(task!, { reason: "why", retryInMs: 0 })).rejects.toThrow(/stayed locked/);
  });
});

describeOnPostgres("workers on many connections", () => {
  test.each(["read committed", "repeatable read", "serializable"])(
    "run each task once and each entity in order, by sessions that are %s",
    async (level) => {
      const config = { options: `-c default_transaction_isolation=${level.replace(" ", String.raw`\ `)}` };
      const { work, transactions, write, paid, pool, schema, addAll } = await newWork({}, config);
      const names = Array.from({ length: 60 }, (_, index) => `${index}@${index % 6}`);
      const owned = new Set<string | undefined>();
      const claimed: number[] = [];
      let ran = 0;
      const worker = async (): Promise<void> => {
        while (ran < names.length) {
          for (const task of await work.claim(taskClaim({ limit: 2 }))) {
            expect(owned.has(task.entity)).toBe(false);
            owned.add(task.entity);
            claimed.push(Number(task.id));
            await pause(1);
            owned.delete(task.entity);
            const finish = () =>
              transactions.run(async (tx) => {
                await write(tx, task.id);
                if (!(await work.finish(tx, task))) throw new Error("owned by another");
              });
            await repeated(finish, transactions);
            ran++;
          }
        }
      };
      const workers = Array.from({ length: 4 }, worker);
      for (let index = 0; index < names.length; index += 10) {
        await repeated(() => addAll(...names.slice(index, index + 10)), transactions);
      }
      await Promise.all(workers);
      expect((await paid()).map(Number)).toEqual(expect.arrayContaining(names.map((_name, index) => index)));
      expect(claimed).toHaveLength(names.length);
      for (let entity = 0; entity < 6; entity++) {
        const ids = claimed.filter((id) => id % 6 === entity);
        expect(ids).toEqual(Array.from({ length: 10 }, (_, index) => entity + 6 * index));
      }
      expect(await work.summaries()).toMatchObject([{ open: 0, running: 0, done: names.length }]);
      // Lanes without tasks go with the next claim.
      expect(await work.claim(taskClaim())).toEqual([]);
      expect((await pool.query(`SELECT FROM ${schema}.countersign_lanes`)).rowCount).toBe(0);
    },
  );

  test.each([
    ["entities", (adder: string, name: string) => `${adder}-${name}@${name}`],
    ["ids, each of an entity of its own", (adder: string, name: string) => `${name}@${adder}-${name}`],
  ])("add in opposite orders of %s past a third one, without a deadlock", async (_what, taskNamed) => {
    const { work, pool, schema, open, addAll } = await newWork();
    const third = await open((tx) => work.add(tx, queue, [taskOf(taskNamed("third", "m"))]));
    const adders = [
      addAll(...["a", "m", "z"].map((name) => taskNamed("one", name))),
      addAll(...["z", "m", "a"].map((name) => taskNamed("other", name))),
    ];
    await untilBlocked(pool, schema, adders.length);
    await third.rollBack();
    await Promise.all(adders);
    expect((await work.list({ queue, limit: 10 })).tasks.length).toBeGreaterThanOrEqual(3);
  });
});

describeOnPostgres("a snapshot that is older than the lane", () => {
  const repeatable = { options: String.raw`-c default_transaction_isolation=repeatable\ read` };

  test("is a conflict to finish() when a task was added since: the lane is not lost", async () => {
    const { work, another, addAll, claimAll, transactions } = await newWork();
    const older = another({}, repeatable);
    await addAll("1@a");
    const [task] = await work.claim(taskClaim());
    const finish = older.transactions.run(async (tx) => {
      await tx.query("SELECT 1");
      await addAll("2@a");
      return older.work.finish(tx, task!);
    });
    const error = await finish.catch((thrown: unknown) => thrown);
    expect(transactions.faultOf(error)).toBe("conflict");
    expect(await older.transactions.run((tx) => older.work.finish(tx, task!))).toBe(true);
    expect(await claimAll()).toEqual(["2"]);
  });

  test("is a conflict to add() when the task was added since", async () => {
    const { another, addAll, transactions } = await newWork();
    const older = another({}, repeatable);
    const add = older.transactions.run(async (tx) => {
      await tx.query("SELECT 1");
      await addAll("1");
      return older.work.add(tx, queue, [taskOf("1")]);
    });
    expect(transactions.faultOf(await add.catch((thrown: unknown) => thrown))).toBe("conflict");
  });
});

describeOnPostgres("a lane that changes between the look of a claim and what it writes", () => {
  /** A store on the same tables; its next claim does `step` in between. */
  async function setUp() {
    const stores = await newWork();
    const database = fromPg(connectPool());
    let step: (() => Promise<unknown>) | undefined;
    const slow = stores.another({
      database: {
        ...database,
        async alone(text, values) {
          const rows = await database.alone(text, values);
          if (text.includes("head_due_us")) await step?.();
          return rows;
        },
      },
    });
    const claimBeside = (beside: () => Promise<unknown>) => {
      step = beside;
      return slow.work.claim(taskClaim());
    };
    return { ...stores, claimBeside };
  }

  test("stays with the claim that took it first", async () => {
    const { work, claimBeside, addAll } = await setUp();
    await addAll("1@a", "2@a");
    expect(await claimBeside(() => work.claim(taskClaim()))).toEqual([]);
    expect(await work.read(queue, "1")).toMatchObject({ state: "open", attempts: 1 });
  });

  test("is not removed where it was removed and came again", async () => {
    const { work, claimBeside, addAll, claimAll, finishAlone } = await setUp();
    await addAll("1@a");
    await finishAlone((await work.claim(taskClaim()))[0]!);
    const comeAgain = async () => {
      expect(await claimAll()).toEqual([]);
      // As many writes as the lane had before.
      for (const name of ["2@a", "3@a", "4@a"]) await addAll(name);
    };
    expect(await claimBeside(comeAgain)).toEqual([]);
    expect(await claimAll()).toEqual(["2"]);
  });

  test("stays with an owner that renews a lease which had ended", async () => {
    const { work, claimBeside, addAll, finishAlone } = await setUp();
    await addAll("1");
    const tasks = await work.claim(taskClaim({ leaseMs: 1 }));
    await pause(5);
    expect(await claimBeside(() => work.extend(tasks, 60_000))).toEqual([]);
    expect(await finishAlone(tasks[0]!)).toBe(true);
    expect(await work.read(queue, "1")).toMatchObject({ failures: [] });
  });
});

describeOnPostgres("a step on a connection with an open transaction", () => {
  test("of its own is refused, and does nothing", async () => {
    const { work, addAll, another, pool } = await newWork();
    await addAll("1");
    const client = await connectClient(pool);
    await client.query("BEGIN; SELECT txid_current()");
    const database = { ...fromPg(connectPool()), alone: runOn(client) };
    const inside = another({ database });
    const [owned] = await work.claim(taskClaim());
    for (const step of [
      () => inside.work.claim(taskClaim()),
      () => inside.work.fail(owned!, { reason: "why", retryInMs: 0 }),
      () => inside.work.retry(queue, { ids: ["1"] }),
      () => inside.work.pause(queue, { by: "anna", note: "why" }),
    ]) {
      await client.query("SAVEPOINT s");
      await expect(step()).rejects.toThrow(/transaction is open/);
      await client.query("ROLLBACK TO s");
    }
    await client.query("COMMIT");
    expect(await work.summaries()).toMatchObject([{ open: 1, running: 1, paused: undefined }]);
  });
});

async function repeated<T>(step: () => Promise<T>, { faultOf }: Faults): Promise<T> {
  for (;;) {
    try {
      return await step();
    } catch (error) {
      if (faultOf(error) !== "conflict") throw error;
    }
  }
}

interface Faults {
  faultOf(error: unknown): unknown;
}

function runOn(client: { query(text: string, values: unknown[]): Promise<{ rows: object[] }> }) {
  return async (text: string, values: readonly unknown[]) => [
    ...((await client.query(text, [...values])).rows as Record<string, unknown>[]),
  ];
}
