import { GuardError } from "@countersign/core";
import { describeOnMysql } from "@countersign/test-support/servers/engines.ts";
import { expect, test } from "@jest/globals";
import { loseDeadlock, newStores, numbers } from "./connections.ts";
import { claimOf } from "./transactions.ts";

const queue = "q";

describeOnMysql("a transaction without keys", () => {
  async function newTask() {
    const stores = await newStores();
    await stores.database.run((tx) => stores.work.add(tx, queue, [{ id: "a", body: "" }]));
    const [task] = await stores.work.claim({ queue, limit: 1, token: "t", leaseMs: 60_000 });
    if (task === undefined) throw new Error("no task");
    return { ...stores, task };
  }

  test("that lost a deadlock is broken, and its task is not done", async () => {
    const { transactions, work, task, pool, table } = await newTask();
    const rival = `${table}_payouts`;
    await pool.query(
      `ALTER TABLE ${rival} DROP PRIMARY KEY, MODIFY id INT PRIMARY KEY, ADD value INT DEFAULT 0`,
    );
    await pool.query(`INSERT INTO ${rival} (id) SELECT seq FROM ${numbers}`);
    const run = transactions.run(async (tx) => {
      await transactions.begin(tx, claimOf([]));
      await loseDeadlock(tx, pool, rival);
      expect(await work.finish(tx, task)).toBe(true);
      await transactions.keep(tx, [], false);
    });
    const error: unknown = await run.catch((reason: unknown) => reason);
    expect(error).toBeInstanceOf(GuardError);
    expect(error).toMatchObject({ code: "transaction-broken" });
    expect(await work.read(queue, "a")).toMatchObject({ state: "open" });
  });
});
