import { expect, test } from "@jest/globals";
import { eventually, sleep } from "@countersign/test-support/runs/eventually.ts";
import { type OpenStores, openEach, payerOn } from "./payer.ts";
import { describeOn, type Opened, poolSize, type TableRow } from "./row.ts";

/** MariaDB has whole seconds. */
const idle = {
  postgresql: { idleTimeoutMs: 100, sleepMs: 500 },
  mysql: { idleTimeoutMs: 1_000, sleepMs: 2_500 },
};

/** What a payment through the library does when the engine ends a wait, or its transaction. */
export function describeTimeOuts<Tx>(row: TableRow<Tx>): void {
  let opened: Opened<Tx>;
  let stores: OpenStores<Tx>;

  describeOn(row.engine)(`a time-out of a payment by ${row.name}`, () => {
    openEach(row, (made) => ({ opened, stores } = made));

    test("ends a wait for a row that another has locked: nothing is paid, the retry pays", async () => {
      const { database, table } = opened;
      await database.alone(`INSERT INTO ${table} (id) VALUES ('account')`, []);
      const lock = (tx: Tx) => database.query(tx, `UPDATE ${table} SET parent = id WHERE id = 'account'`, []);
      const other = await open((tx) => lock(tx));
      const pay = payerOn(
        stores,
        async (tx, key) => {
          await opened.insertByHandler(tx, key);
          await lock(tx);
        },
        { waitMs: 100 },
      );
      expect(await pay("a", "n")).toBe("transaction-conflict");
      expect(await opened.countRows()).toBe(1);
      await other.end();
      expect(await pay("a", "n")).toBe(200);
      expect(await opened.countRows()).toBe(2);
    });

    test("ends a wait for the key of an open payment, which is paid", async () => {
      let begun = (): void => {};
      const hasBegun = new Promise<void>((resolve) => (begun = resolve));
      let go = (): void => {};
      const told = new Promise<void>((resolve) => (go = resolve));
      const handler = (tx: Tx, key: string) => opened.insertByHandler(tx, key);
      const slow = payerOn(stores, async (tx, key) => {
        await handler(tx, key);
        begun();
        await told;
      });
      const first = slow("a");
      await hasBegun;
      // With lanes of its own, as another process has.
      const second = payerOn(stores, handler, { waitMs: 100 });
      expect(await second("a", "n")).toBe("in-flight");
      go();
      expect(await first).toBe(200);
      expect(await second("a", "n")).toBe("already-processed");
      expect(await opened.countRows()).toBe(1);
    });

    test("ends a transaction that stands idle: nothing is paid, the retry pays, and the pool is whole", async () => {
      const { idleTimeoutMs, sleepMs } = idle[row.engine];
      const slow = payerOn(
        stores,
        async (tx, key) => {
          await opened.insertByHandler(tx, key);
          await opened.database.query(tx, "SELECT 1", []);
          await sleep(sleepMs);
        },
        { idleTimeoutMs },
      );
      expect(await slow("a")).toBe("transaction-unavailable");
      expect(await opened.countRows()).toBe(0);
      const pay = payerOn(stores, (tx, key) => opened.insertByHandler(tx, key));
      // A pool may hand the lost line out once more.
      await eventually(async () => (await pay("a")) === 200);
      const keys = Array.from({ length: 2 * poolSize }, (_, index) => `other ${index}`);
      expect(await Promise.all(keys.map((key) => pay(key)))).toEqual(keys.map(() => 200));
      expect(await opened.countRows()).toBe(1 + keys.length);
    });
  });

  /** A transaction of somebody else, which has done the work and is rolled back at its end. */
  async function open(work: (tx: Tx) => Promise<unknown>): Promise<{ end(): Promise<void> }> {
    let go = (): void => {};
    const told = new Promise<void>((resolve) => (go = resolve));
    let running: Promise<unknown> | undefined;
    await new Promise<void>((resolve, reject) => {
      running = opened.database.run(async (tx) => {
        await work(tx);
        resolve();
        await told;
        throw new Error("rolled back");
      });
      running.catch(reject);
    });
    return {
      async end() {
        go();
        await expect(running).rejects.toThrow("rolled back");
      },
    };
  }
}
