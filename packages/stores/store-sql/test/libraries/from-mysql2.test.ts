import { expect, test } from "@jest/globals";
import { createPool as createCallbackPool } from "mysql2";
import { type Pool, type PoolConnection, createPool } from "mysql2/promise";
import { fromMysql2 } from "@countersign/store-sql/mysql2";
import { afterTest } from "@countersign/test-support/runs/after-test.ts";
import { describeOnMysql, isolatedName, mysqlUrl } from "@countersign/test-support/servers/engines.ts";

const uri = mysqlUrl ?? "mysql://root@127.0.0.1:1/test";

async function expectNoTransaction(pool: Pool): Promise<void> {
  const connection = await pool.getConnection();
  await connection.query("SAVEPOINT one");
  await expect(connection.query("RELEASE SAVEPOINT one")).rejects.toThrow(/SAVEPOINT one does not exist/);
  connection.release();
}

async function newDatabase(connectionLimit = 2) {
  const pool = createPool({ uri, connectionLimit });
  afterTest(() => pool.end());
  const table = isolatedName("my2");
  await pool.query(`CREATE TABLE ${table} (id INT PRIMARY KEY)`);
  afterTest(() => pool.query(`DROP TABLE ${table}`));
  return {
    pool,
    database: fromMysql2(pool),
    insert: `INSERT INTO ${table} VALUES (?)`,
    all: `SELECT id FROM ${table}`,
  };
}

test("fromMysql2 refuses what is no pool with promises", () => {
  const pool = createCallbackPool({ uri });
  afterTest(() => pool.end());
  // @ts-expect-error -- as a caller without types
  expect(() => fromMysql2(pool)).toThrow("fromMysql2: needs a Pool of mysql2/promise, or pool.promise()");
  // @ts-expect-error -- as a caller without types
  expect(() => fromMysql2({})).toThrow(TypeError);
  expect(fromMysql2(pool.promise()).library).toBe("mysql2");
});

describeOnMysql("fromMysql2", () => {
  test("gives its connections back, also after failures and lost lines", async () => {
    const { pool, database, insert, all } = await newDatabase();
    for (let round = 0; round < 5; round += 1) {
      await expect(database.run(() => Promise.reject(new Error("refused")))).rejects.toThrow("refused");
      const lost = database.run(async (tx) => {
        await database.query(tx, insert, [round]);
        await pool.query(`KILL ${tx.threadId}`);
        await database.query(tx, all, []);
      });
      await expect(lost).rejects.toThrow();
    }
    expect(await database.alone(all, [])).toEqual([]);
    await expectNoTransaction(pool);
  });

  test("gives the place of a lost session back, also while its work never ends", async () => {
    const { pool, database, insert, all } = await newDatabase();
    const work: Promise<unknown>[] = [];
    let goOn = (): void => {};
    const waits = new Promise<void>((resolve) => (goOn = resolve));
    // Each of the pool's two places.
    for (const id of [1, 2]) {
      await new Promise<void>((isLost) => {
        const lost = database.run(async (tx) => {
          await database.query(tx, insert, [id]);
          tx.once("error", () => isLost());
          const others = createPool({ uri, connectionLimit: 1 });
          await others.query(`KILL ${tx.threadId}`);
          await others.end();
          await waits;
          await database.query(tx, insert, [id + 10]);
        });
        work.push(expect(lost).rejects.toThrow());
      });
    }
    expect(await database.run((tx) => database.query(tx, "SELECT 1 AS one", []))).toEqual([{ one: 1 }]);
    goOn();
    await Promise.all(work);
    expect(await pool.query(all).then(([rows]) => rows)).toEqual([]);
  });

  test("lends the connection, which nobody else may release", async () => {
    const { database, insert, all } = await newDatabase();
    await database.run(async (tx) => {
      expect(() => tx.release()).toThrow("do not release it");
      await tx.execute(insert, [1]);
    });
    expect(await database.alone(all, [])).toEqual([{ id: 1 }]);
  });

  test.each<[string, (tx: PoolConnection, insert: string) => Promise<unknown>]>([
    ["execute", (tx, insert) => tx.execute(insert, [1])],
    ["prepare", async (tx, insert) => (await tx.prepare(insert)).execute([1])],
    ["two at once", (tx, insert) => Promise.all([tx.query(insert, [1]), tx.query(insert, [2])])],
  ])("has begun before a first statement by %s", async (_name, send) => {
    const { database, insert, all } = await newDatabase();
    const failed = database.run(async (tx) => {
      await send(tx, insert);
      throw new Error("refused");
    });
    await expect(failed).rejects.toThrow("refused");
    expect(await database.alone(all, [])).toEqual([]);
  });

  test("gives no connection with callbacks before a first statement: it would commit alone", async () => {
    const { database, insert, all } = await newDatabase();
    await expect(database.run(async (tx) => tx.connection.query(insert, [1]))).rejects.toThrow(
      "the first statement of a transaction must go by query or execute",
    );
    expect(await database.alone(all, [])).toEqual([]);
  });

  test("undoes a first script that fails in its middle, and sends nothing of the work behind it", async () => {
    const { pool, database, insert, all } = await newDatabase();
    const swallowed = database.run(async (tx) => {
      const script = database.script?.(tx, `${insert.replace("?", "1")}; SELECT nothing_of_the_kind`);
      await expect(script).rejects.toThrow("nothing_of_the_kind");
      await expect(tx.query(insert, [2])).rejects.toThrow("nothing_of_the_kind");
      await expect(database.script?.(tx, "SELECT 1")).rejects.toThrow("nothing_of_the_kind");
    });
    await expect(swallowed).rejects.toThrow("nothing_of_the_kind");
    expect(await database.alone(all, [])).toEqual([]);
    await expectNoTransaction(pool);
  });

  test("refuses a change by itself on a connection on which a transaction is open", async () => {
    const { pool, database, insert, all } = await newDatabase(1);
    await pool.query("START TRANSACTION");
    const open = database.change?.(insert, [2]);
    await expect(open).rejects.toThrow(/on which a transaction is open/);
    // What changes nothing can take nothing back.
    expect(
      await database.change?.(
        insert.replace(/^INSERT INTO (.*) VALUES.*$/, "DELETE FROM $1 WHERE id = ?"),
        [4],
      ),
    ).toBe(0);
    await pool.query("ROLLBACK");
    expect(await database.alone(all, [])).toEqual([]);
  });

  test("takes scripts on the connection of its own transactions alone", async () => {
    const { pool, database } = await newDatabase();
    const connection = await pool.getConnection();
    await expect(database.script?.(connection, "SELECT 1")).rejects.toThrow(TypeError);
    connection.release();
  });
});
