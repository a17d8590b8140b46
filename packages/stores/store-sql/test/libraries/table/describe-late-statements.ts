import { afterEach, beforeEach, expect, test } from "@jest/globals";
import type { Database } from "@countersign/idempotency";
import { notAsked } from "./describe-database.ts";
import { type OpenStores, openStores, payerOn } from "./payer.ts";
import { describeOn, type Opened, type TableRow } from "./row.ts";

/** Payments in whose transaction a statement fails that the handler has not awaited, or whose error it has swallowed. */
export function describeLateStatements<Tx>(row: TableRow<Tx>): void {
  const onPostgresql = row.engine === "postgresql" ? test : notAsked;
  let opened: Opened<Tx>;
  let stores: OpenStores<Tx>;
  /** After how many statements of the store's own one fails. */
  let failsAfter = Number.POSITIVE_INFINITY;

  const send = (tx: Tx, text: string) => opened.database.query(tx, text, []);
  const fail = async (tx: Tx): Promise<unknown> =>
    row.engine === "postgresql" ? send(tx, "SELECT 1 / 0") : deadlock(tx);

  describeOn(row.engine)(`a late statement of a payment by ${row.name}`, () => {
    beforeEach(async () => {
      opened = await row.open();
      stores = await openStores(interrupted(opened.database));
      await opened.database.alone(`INSERT INTO ${opened.table} (id) VALUES ('a'), ('b')`, []);
    });
    afterEach(async () => {
      failsAfter = Number.POSITIVE_INFINITY;
      await stores.close();
      await opened.end();
    });

    test("fails behind any statement of the store, also behind the last one: 200 only if paid", async () => {
      const pay = payerOn(stores, (tx, key) => opened.insertByHandler(tx, key));
      await pay("the store proves once that it has transactions");
      let places = 0;
      for (let hasFailed = true; hasFailed; places += 1) {
        failsAfter = places;
        // oxlint-disable-next-line no-await-in-loop -- one payment after the other
        hasFailed = await expectOneAnswer(`payment ${places}`, pay);
      }
      expect(places).toBeGreaterThanOrEqual(3);
    });

    onPostgresql("fails in a transaction of the app's own: it does not seem to be committed", async () => {
      const { transactions } = stores;
      const broken = transactions.run(async (tx) => {
        await opened.insertByHandler(tx, "task");
        await fail(tx).catch(() => {});
      });
      await expect(broken).rejects.toMatchObject({ code: "transaction-broken" });
      await transactions.run((tx) => opened.insertByHandler(tx, "task"));
      await transactions.run((tx) => send(tx, "SELECT 1"));
      expect(await opened.countRows()).toBe(3);
    });
  });

  /** Answer, row and key say the same. Tells whether the store sent so many statements that one failed behind them. */
  async function expectOneAnswer(key: string, pay: (key: string) => Promise<unknown>): Promise<boolean> {
    const before = await opened.countRows();
    const answer = await pay(key);
    const hasFailed = failsAfter === Number.POSITIVE_INFINITY;
    failsAfter = Number.POSITIVE_INFINITY;
    const paid = (await opened.countRows()) - before;
    expect([key, answer, paid]).toEqual([key, answer, answer === 200 ? 1 : 0]);
    if (row.engine === "postgresql") expect(answer).not.toBe("commit-unknown");
    // MariaDB does not tell a swallowed deadlock from a ROLLBACK behind which the handler has paid: an operator looks.
    const isHeld = row.engine !== "postgresql" && answer === "transaction-broken";
    const unpaid = isHeld ? "held" : 200;
    expect([key, await pay(key)]).toEqual([key, paid === 1 ? "already-processed" : unpaid]);
    expect((await opened.countRows()) - before).toBe(isHeld ? 0 : 1);
    return hasFailed;
  }

  function interrupted(database: Database<Tx>): Database<Tx> {
    const behind = async <T>(tx: Tx, sent: Promise<T>): Promise<T> => {
      const result = await sent;
      failsAfter -= 1;
      if (failsAfter < 0) {
        failsAfter = Number.POSITIVE_INFINITY;
        await fail(tx).catch(() => {});
      }
      return result;
    };
    const { script } = database;
    return {
      ...database,
      query: (tx, text, values) => behind(tx, database.query(tx, text, values)),
      ...(script && { script: (tx: Tx, text: string) => behind(tx, script(tx, text)) }),
    };
  }

  /** MariaDB undoes all of a transaction after a deadlock alone, and of the one that has written less. */
  async function deadlock(tx: Tx): Promise<void> {
    const { database, table } = opened;
    const lock = (own: Tx, id: string) => send(own, `UPDATE ${table} SET parent = id WHERE id = '${id}'`);
    await lock(tx, "a");
    let rival: Promise<unknown> | undefined;
    await new Promise<void>((resolve, reject) => {
      rival = database.run(async (other) => {
        await lock(other, "b");
        await send(
          other,
          `INSERT INTO ${table} (id) WITH RECURSIVE n AS (SELECT 1 AS seq UNION ALL SELECT seq + 1 FROM n WHERE seq < 50) SELECT CONCAT('rival ', seq) FROM n`,
        );
        resolve();
        await lock(other, "a");
        throw new Error("the rival writes nothing");
      });
      rival.catch(reject);
    });
    const locked = lock(tx, "b");
    await expect(rival).rejects.toThrow("the rival writes nothing");
    await locked;
  }
}
