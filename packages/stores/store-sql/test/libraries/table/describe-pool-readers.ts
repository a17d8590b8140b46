import { afterTest } from "@countersign/test-support/runs/after-test.ts";
import { expect, test } from "@jest/globals";
import { barrier } from "./describe-database.ts";
import { openStores, payerOn } from "./payer.ts";
import { describeOn, type Opened, poolSize, type TableRow } from "./row.ts";

const keys = Array.from({ length: 3 * poolSize }, (_, index) => String(index));

/** Handlers that also read by the pool, as a repository or a cache does, while their transactions have connections of the same pool. */
export function describePoolReaders<Tx>(row: TableRow<Tx>): void {
  describeOn(row.engine)(`handlers that read by the pool of ${row.name}`, () => {
    test("pays all of them: the transactions leave the pool a connection", async () => {
      const opened = await open();
      // Where the library does not tell the size of its pool.
      const most = opened.database.pool?.() === undefined ? { maxTransactions: poolSize - 1 } : {};
      const stores = await openStores(opened.database, most);
      afterTest(() => stores.close());
      const pay = payerOn(stores, (tx, key) => reading(opened, tx, key), { storeTimeoutMs: 60_000 });
      expect(await Promise.all(keys.map((key) => pay(key)))).toEqual(keys.map(() => 200));
      expect(await opened.countRows()).toBe(keys.length);
    });

    test("gives the connections back when the requests are given up, and the retries pay", async () => {
      const opened = await open();
      const stores = await openStores(opened.database, { maxTransactions: poolSize });
      afterTest(() => stores.close());
      const first = keys.slice(0, poolSize);
      const paying = payerOn(stores, (tx, key) => opened.insertByHandler(tx, key));
      const paid = first.map(() => 200);
      // The pool has all its connections, and the store its proofs: neither counts as time of what follows.
      expect(await Promise.all(first.map((key) => paying(`before ${key}`)))).toEqual(paid);
      const handlers: Promise<void>[] = [];
      const all = barrier(poolSize);
      const pay = payerOn(
        stores,
        (tx, key) => {
          const handler = reading(opened, tx, key, all);
          handlers.push(handler);
          return handler;
        },
        { transactionTimeoutMs: 2_000 },
      );
      expect(await Promise.all(first.map((key) => pay(key)))).toEqual(
        first.map(() => "transaction-timed-out"),
      );
      // Each read was answered, since the transactions were rolled back.
      await Promise.all(handlers);
      expect(await opened.countRows()).toBe(first.length);
      expect(await Promise.all(first.map((key) => paying(key)))).toEqual(paid);
      expect(await opened.countRows()).toBe(2 * first.length);
    });
  });

  async function open(): Promise<Opened<Tx>> {
    const opened = await row.open();
    afterTest(() => opened.end());
    return opened;
  }
}

async function reading<Tx>(
  opened: Opened<Tx>,
  tx: Tx,
  key: string,
  before: () => Promise<void> = async () => {},
): Promise<void> {
  await opened.insertByHandler(tx, key);
  await before();
  await opened.countRows();
}
