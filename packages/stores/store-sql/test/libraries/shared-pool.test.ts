// Payouts beside a backlog of tasks, on one pool of pg with its own defaults.
import { expect, test } from "@jest/globals";
import { fromPg } from "@countersign/store-sql/pg";
import { eventually } from "@countersign/test-support/runs/eventually.ts";
import { createTaskQueue } from "@countersign/idempotency/work";
import { Pool, type PoolClient } from "pg";
import { openStores, payerOn } from "./table/payer.ts";
import { describeOn, servers } from "./table/row.ts";
import { expectWarning } from "@countersign/test-support/runs/expect-warning.ts";

describeOn("postgresql")("a backlog of slow tasks", () => {
  test("leaves payouts their connections, by the defaults of both", async () => {
    const pool = new Pool({ connectionString: servers.postgresql });
    const stores = await openStores<PoolClient>(fromPg(pool));
    const { work } = stores;
    if (work === undefined) throw new Error("no table of work");
    let open = (): void => {};
    const gate = new Promise<void>((resolve) => (open = resolve));
    let begun = 0;
    const tasks = createTaskQueue({
      stores: { ...stores, work },
      queue: "slow",
      async exactlyOnce() {
        begun += 1;
        await gate;
      },
    });
    try {
      const ids = Array.from({ length: 30 }, (_, index) => String(index));
      await stores.transactions.run((tx) => tasks.add(tx, ...ids.map((id) => ({ id, body: "" }))));
      tasks.start();
      await eventually(async () => {
        const [summary] = await work.summaries();
        return begun > 0 && begun === summary?.running;
      });
      const pay = payerOn(stores, () => {});
      expect(await Promise.all(["a", "b", "c"].map((key) => pay(key)))).toEqual([200, 200, 200]);
      expectWarning(/^\[transaction-unused\]/);
    } finally {
      open();
      await tasks.drain();
      await stores.close();
      await pool.end();
    }
  });
});
