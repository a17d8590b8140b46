import { fromPg } from "@countersign/store-sql/pg";
import { describe, expect, test } from "@jest/globals";
import { afterTest, testClock } from "@countersign/test-support/runs/after-test.ts";
import { describeOnPostgres } from "@countersign/test-support/servers/engines.ts";
import { connectPool, dayMs, untilBlocked } from "./connections.ts";
import { claimOf, keyOf, libraries, newPayouts, payIn, giveBackIn } from "./payouts.ts";

const nothing = (): Promise<void> => Promise.resolve();

describeOnPostgres("a payment in one transaction", () => {
  describe.each(libraries)("with %s", (_library, as) => {
    const setUp = (options: Parameters<typeof newPayouts>[0] = {}) =>
      newPayouts({ ...options, database: as(fromPg(connectPool({ max: 20 }))) });

    test("gives fences above the highest one pruned, though the clock was set back", async () => {
      const clock = testClock();
      const { transactions, idempotency } = await setUp({ now: clock.now, retentionMs: dayMs });
      await payIn(transactions, claimOf([keyOf("k")]), nothing);
      const before = (await idempotency.read("k"))?.fence;
      expect(before).toBe(clock.now() * 1000);
      clock.advance(dayMs);
      await idempotency.prune();
      clock.advance(-2 * dayMs);
      await payIn(transactions, claimOf([keyOf("k")]), nothing);
      expect((await idempotency.read("k"))?.fence).toBe((before ?? Number.NaN) + 1);
    });

    test("that is given back keeps the row of its free key for a day", async () => {
      const clock = testClock();
      const { transactions, pool, schema } = await setUp({ now: clock.now });
      await giveBackIn(transactions, claimOf([keyOf("k")]));
      const { rows } = await pool.query(
        `SELECT state, until_at FROM ${schema}.countersign_idempotency WHERE key = 'k'`,
      );
      expect(rows).toEqual([{ state: "free", until_at: new Date(clock.now() + dayMs) }]);
    });

    test("waits with keys in order: none behind the one that it waits for is taken", async () => {
      const { transactions, pool, schema } = await setUp();
      let end = (): void => {};
      const told = new Promise<void>((resolve) => (end = resolve));
      afterTest(() => end());
      let open = Promise.resolve<unknown>(undefined);
      await new Promise<void>((begun) => {
        open = payIn(transactions, claimOf([keyOf("b")]), () => (begun(), told));
      });
      const waiting = payIn(transactions, claimOf(["c", "b", "a"].map(keyOf)), nothing);
      await untilBlocked(pool, schema);
      const [c, a] = await Promise.allSettled([
        payIn(transactions, claimOf([keyOf("c")]), nothing),
        payIn(transactions, claimOf([keyOf("a")], { waitMs: 50 }), nothing),
      ]);
      expect(c).toMatchObject({ status: "fulfilled", value: { keys: [{ status: "begun" }] } });
      expect(a.status).toBe("rejected");
      end();
      await open;
      expect((await waiting).keys.map(({ status }) => status)).toEqual(["done", "done", "begun"]);
    });
  });

  test("leaves its settings on no connection, and makes its commit durable", async () => {
    const config = { max: 1, options: "-c synchronous_commit=off" };
    const { another, write } = await newPayouts();
    const pool = connectPool(config);
    const { transactions } = another({ database: fromPg(pool) });
    const settings = `SELECT current_setting('lock_timeout') AS wait, current_setting('synchronous_commit') AS durable,
      current_setting('idle_in_transaction_session_timeout') AS idle, current_setting('search_path') AS path`;
    const before = (await pool.query(settings)).rows;
    let within: unknown;
    await payIn(transactions, claimOf([keyOf("k")], { waitMs: 700, idleTimeoutMs: 800 }), async (tx) => {
      await write(tx, "k");
      within = (await tx.query(settings)).rows;
    });
    expect(within).toEqual([{ wait: "700ms", durable: "on", idle: "800ms", path: before[0].path }]);
    expect((await pool.query(settings)).rows).toEqual(before);
  });

  test("ends when the process stands still for longer than it may: nothing of it stays", async () => {
    const { transactions, write, paid, idempotency } = await newPayouts();
    const slow = payIn(transactions, claimOf([keyOf("k")], { idleTimeoutMs: 50 }), async (tx) => {
      await write(tx, "k");
      await new Promise((resolve) => setTimeout(resolve, 300));
    });
    expect(transactions.faultOf(await slow.catch((error: unknown) => error))).toBe("unavailable");
    expect(await paid()).toEqual([]);
    expect(await idempotency.read("k")).toBeUndefined();
  });

  test.each<[string, object, RegExp]>([
    ["a wait without an end", { waitMs: 0 }, /waitMs must be/],
    ["half a millisecond to stand idle", { idleTimeoutMs: 0.5 }, /idleTimeoutMs must be/],
  ])("refuses a claim with %s", async (_case, claim, message) => {
    const { transactions } = await newPayouts();
    const begin = transactions.run((tx) => transactions.begin(tx, { ...claimOf([keyOf("k")]), ...claim }));
    await expect(begin).rejects.toThrow(message);
  });

  test("tells the engine, its mode and its retention, and nothing once closed", async () => {
    const { transactions, close } = await newPayouts({ retentionMs: 3 * dayMs });
    expect(transactions).toMatchObject({ engine: "postgresql", mode: "async", retentionMs: 3 * dayMs });
    close();
    await expect(transactions.run(nothing)).rejects.toThrow(/closed/);
  });
});
