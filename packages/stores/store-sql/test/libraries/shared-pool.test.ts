// What shares a pool of pg: payouts, a backlog of tasks, stores of their own.
import { expect, jest, test } from "@jest/globals";
import { fromPg } from "@countersign/store-sql/pg";
import { eventually } from "@countersign/test-support/runs/eventually.ts";
import { createTaskQueue } from "@countersign/idempotency/work";
import { Pool, type PoolClient } from "pg";
import { openStores, payerOn } from "./table/payer.ts";
import { describeOn, servers } from "./table/row.ts";
import { expectWarning } from "@countersign/test-support/runs/expect-warning.ts";

describeOn("postgresql")("a backlog of slow tasks", () => {
  test.each([
    ["of pg's default size", {}, 4],
    ["of five connections", { max: 5 }, 3],
  ])("leaves payouts their connections on a pool %s", async (_pool, size, expected) => {
    const pool = new Pool({ connectionString: servers.postgresql, ...size });
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
      await eventually(() => begun === expected);
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

describeOn("postgresql")("two stores on one pool", () => {
  test("share its places: a transaction of one store waits for that of the other", async () => {
    const pool = new Pool({ connectionString: servers.postgresql, max: 2 });
    const [one, other] = [
      await openStores<PoolClient>(fromPg(pool)),
      await openStores<PoolClient>(fromPg(pool)),
    ];
    try {
      let open = 0;
      const seen: number[] = [];
      const run = (stores: typeof one) =>
        stores.transactions.run(async () => {
          open += 1;
          seen.push(open);
          await pool.query("SELECT pg_sleep(0.1)");
          open -= 1;
        });
      await Promise.all([run(one), run(other), run(one), run(other)]);
      expect(seen).toEqual([1, 1, 1, 1]);
    } finally {
      await one.close();
      await other.close();
      await pool.end();
    }
  });
});

describeOn("postgresql")("a transaction whose request was given up while it waited", () => {
  test("takes no connection when its turn comes", async () => {
    const pool = new Pool({ connectionString: servers.postgresql, max: 2 });
    const stores = await openStores<PoolClient>(fromPg(pool));
    try {
      // What is proven before the first transaction takes connections too.
      await stores.transactions.run(async () => {});
      let taken = 0;
      pool.on("acquire", () => (taken += 1));
      let end = (): void => {};
      const ended = new Promise<void>((resolve) => (end = resolve));
      const first = stores.transactions.run(() => ended);
      await eventually(() => taken === 1);
      let isGivenUp = false;
      const work = jest.fn(async () => {});
      const given = Array.from({ length: 5 }, () =>
        stores.transactions.run(work, { isGivenUp: () => isGivenUp }),
      );
      const last = stores.transactions.run(async () => "runs");
      isGivenUp = true;
      end();
      await first;
      const outcomes = await Promise.allSettled(given);
      expect(outcomes.map(({ status }) => status)).toEqual(outcomes.map(() => "rejected"));
      expect([await last, taken, work.mock.calls.length]).toEqual(["runs", 2, 0]);
    } finally {
      await stores.close();
      await pool.end();
    }
  });
});
