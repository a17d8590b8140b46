import { fromMysql2 } from "@countersign/store-sql/mysql2";
import type { Database } from "@countersign/idempotency";
import type { Row } from "@countersign/idempotency/store";
import { describe, expect, test } from "@jest/globals";
import { afterTest } from "@countersign/test-support/runs/after-test.ts";
import { describeOnMysql, mysqlEngine } from "@countersign/test-support/servers/engines.ts";
import type { Pool, PoolConnection } from "mysql2/promise";
import { connectPool, openStores, idsOf, loseDeadlock, newStores, numbers } from "./connections.ts";
import { claimOf, newKey, pastGate, payOne } from "./transactions.ts";

type OfPool = (pool: Pool) => Database<PoolConnection>;

const libraries: readonly [string, OfPool][] = [
  ["a library that sends scripts", (pool) => fromMysql2(pool)],
  [
    "a library that sends single statements",
    (pool) => {
      const { script: _script, ...database } = fromMysql2(pool);
      return database;
    },
  ],
];

/** Of mysql2, with `change` for what it does with the message that commits, or behind it. */
function changed(
  change: (database: Database<PoolConnection>) => Partial<Database<PoolConnection>>,
): Database<PoolConnection> {
  const database = fromMysql2(connectPool());
  return { ...database, ...change(database) };
}

/** Throws behind the message that commits. */
function failingAt(errno: number, text: string, rows: readonly Row[]): readonly Row[] {
  if (!text.includes("SET SESSION autocommit = IF(")) return rows;
  throw Object.assign(new Error("ended"), { errno, sqlState: "70100" });
}

describeOnMysql("a COMMIT that took effect, and behind which an error comes", () => {
  test.each<[string, Parameters<typeof changed>[0]]>([
    ...[1317, 1969].map((errno): [string, Parameters<typeof changed>[0]] => [
      `of a statement that was ended (${errno})`,
      (database) => ({
        query: async (tx, text, values) => failingAt(errno, text, await database.query(tx, text, values)),
        script: async (tx, text) => failingAt(errno, text, (await database.script?.(tx, text)) ?? []),
      }),
    ]),
    [
      "of a hook of the app's",
      (database) => {
        let runs = 0;
        return {
          run: (work) =>
            database.run(async (tx) => {
              const result = await work(tx);
              // The first one is the store's own proof.
              if (++runs > 1) throw Object.assign(new Error("duplicate"), { errno: 1062, sqlState: "23000" });
              return result;
            }),
        };
      },
    ],
  ])("is unknown, and never refused: %s", async (_case, change) => {
    const { pool, table, transactions } = await newStores();
    const { transactions: failing } = openStores(pool, { table, database: changed(change) });
    const error = await payOne(failing, newKey("k")).catch((caught: unknown) => caught);
    expect(error).toBeInstanceOf(Error);
    expect(failing.faultOf(error)).toBeUndefined();
    expect(await payOne(transactions, newKey("k"))).toBe("done");
  });
});

describeOnMysql("a late statement of a handler", () => {
  describe.each(libraries)("with %s", (_library, of) => {
    const sendsScripts = mysqlEngine === "mariadb" && of === libraries[0]?.[1];

    async function setUp() {
      const scene = await newStores({ database: of(connectPool({ connectionLimit: 2 })) });
      const { pool, table, transactions } = scene;
      const rival = `${table}_rival`;
      afterTest(() => connectPool().query(`DROP TABLE IF EXISTS ${rival}`));
      await pool.query(`CREATE TABLE ${rival} (id INT PRIMARY KEY, value INT) ENGINE = InnoDB`);
      await pool.query(`INSERT INTO ${rival} SELECT seq, 0 FROM ${numbers}`);
      /** Pays, and lets the statement come between the last one of ours and COMMIT. */
      const payThen = async (late: (tx: PoolConnection) => Promise<unknown>): Promise<unknown> => {
        const key = newKey("k");
        const paying = transactions.run(async (tx) => {
          await transactions.begin(tx, claimOf([key]));
          await tx.query(`INSERT INTO ${table}_payouts VALUES ('first')`);
          await transactions.keep(tx, [key], false);
          await late(tx);
        });
        return paying.catch((error: unknown) => error);
      };
      return { ...scene, rival, payThen };
    }

    const unknown = expect.objectContaining({
      message: expect.stringMatching(/ended between the last statement and COMMIT; await every statement/),
    });

    test("that loses a deadlock undoes the payment: nobody is told that it is paid", async () => {
      const { payThen, pool, rival, table, transactions } = await setUp();
      const error = await payThen(async (tx) => {
        await loseDeadlock(tx, pool, rival);
        await tx.query(`INSERT INTO ${table}_payouts VALUES ('later')`);
      });
      expect(error).toEqual(unknown);
      // It may as well have changed a table's definition: nobody knows.
      expect(transactions.faultOf(error)).toBeUndefined();
      expect(await idsOf(pool, table)).toEqual([]);
      expect(await payOne(transactions, newKey("k"))).toBe("begun");
    });

    test("that changes a table's definition commits the payment: nobody is told that it is not", async () => {
      const { payThen, pool, rival, table, transactions } = await setUp();
      const paid = payThen(async (tx) => {
        const alter = pastGate(transactions, tx, `ALTER TABLE ${rival} ADD COLUMN other INT`);
        // Behind its own commit it is in another transaction.
        await expect(alter).rejects.toThrow(/READ ONLY transaction/);
      });
      // Its savepoint is gone with the transaction; without a savepoint its key is found to be done.
      expect(await paid).toEqual(sendsScripts ? unknown : undefined);
      expect(await idsOf(pool, table)).toEqual(["first"]);
      expect(await payOne(transactions, newKey("k"))).toBe("done");
    });

    test("that fails by itself takes nothing of the payment", async () => {
      const { payThen, pool, table, transactions } = await setUp();
      const late = (tx: PoolConnection) => tx.query("SELECT nothing_of_the_kind").catch(() => {});
      expect(await payThen(late)).toBeUndefined();
      expect(await idsOf(pool, table)).toEqual(["first"]);
      expect(await payOne(transactions, newKey("k"))).toBe("done");
    });
  });
});
