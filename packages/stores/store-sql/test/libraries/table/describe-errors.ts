import { createStores, migrate } from "@countersign/store-sql";
import { afterEach, beforeEach, describe, expect, test } from "@jest/globals";
import { barrier, notAsked, statesOf } from "./describe-database.ts";
import { describeOn, endSession, type Opened, type TableRow } from "./row.ts";

/** On PostgreSQL: which of two errors the caller gets, and how it knows that the whole transaction is to be repeated. */
export function describeErrors<Tx>(row: TableRow<Tx>): void {
  describeOn(row.engine)(row.name, () => defineErrors(row));
}

function defineErrors<Tx>(row: TableRow<Tx>): void {
  let opened: Opened<Tx>;
  beforeEach(async () => {
    opened = await row.open();
  });
  afterEach(() => opened.end());

  const send = (tx: Tx, text: string) => opened.database.query(tx, text, []);
  const count = (tx: Tx) => send(tx, `SELECT count(*) FROM ${opened.table}`);

  const whereItIsSet = row.lacks?.includes("setting the isolation") ? notAsked : test;

  test("tells the stores which engine it is on: they refuse another one, and ask it for nothing else", async () => {
    const { database } = opened;
    const asked: string[] = [];
    const other: typeof database = {
      ...database,
      alone(text, values) {
        asked.push(text);
        return database.alone(text.replace("version()", "'CockroachDB CCL v25.2.1'::text"), values);
      },
    };
    const stores = createStores({ database: other, pruneIntervalMs: 0 });
    try {
      const refused =
        "createStores: the server is CockroachDB CCL v25.2.1, on which the stores were never tried";
      await expect(stores.ready()).rejects.toThrow(refused);
      await expect(stores.transactions.run(() => 1)).rejects.toThrow(refused);
      await expect(migrate(other)).rejects.toThrow(refused.replace("createStores", "migrate"));
    } finally {
      stores.close();
    }
    expect(asked).toEqual(Array.from({ length: 3 }, () => "SELECT version() AS engine"));
  });

  describe("in one transaction", () => {
    test(`${row.tellsRollback ? "tells" : "does not tell"} that COMMIT was answered with ROLLBACK, as it says`, async () => {
      const insert = `INSERT INTO ${opened.table} (id) VALUES ('key')`;
      const running = opened.database.run(async (tx) => {
        await send(tx, insert);
        await send(tx, insert).catch(() => {});
      });
      const error = await running.catch((caught: unknown) => caught);
      if (row.tellsRollback) expect(String(error)).toContain("was rolled back");
      else expect(error).toBeUndefined();
      // What the store relies on.
      if (opened.database.tellsRollback) expect(statesOf(error)).toContain("25P02");
      expect(await opened.countRows()).toBe(0);
    });

    test("rejects with the work's own error when the rollback fails too", async () => {
      const thrown = new Error("not paid");
      const running = opened.database.run(async (tx) => {
        const [self] = await send(tx, "SELECT pg_backend_pid() AS id");
        await endSession((text) => opened.database.alone(text, []), Number(self?.["id"]));
        throw thrown;
      });
      await expect(running).rejects.toBe(thrown);
      // A pool may not have heard yet that the session is gone, and lends it once more.
      await opened.countRows().catch(() => {});
    });

    whereItIsSet("lets the caller recognise a statement's serialization failure", async () => {
      const { database, table } = opened;
      await database.alone(`INSERT INTO ${table} (id) VALUES ('a')`, []);
      const running = database.run(async (tx) => {
        await send(tx, "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ");
        await count(tx);
        await database.alone(`UPDATE ${table} SET parent = 'a'`, []);
        await send(tx, `UPDATE ${table} SET parent = NULL`);
      });
      const error = await running.catch((caught: unknown) => caught);
      expect(statesOf(error)).toContain("40001");
    });

    whereItIsSet("lets the caller recognise a serialization failure of COMMIT", async () => {
      const both = barrier(2);
      const results = await Promise.allSettled(
        ["a", "b"].map((id) =>
          opened.database.run(async (tx) => {
            await send(tx, "SET TRANSACTION ISOLATION LEVEL SERIALIZABLE");
            await count(tx);
            await opened.insertByHandler(tx, id);
            await both();
          }),
        ),
      );
      const failed = results.flatMap((each) => (each.status === "rejected" ? [statesOf(each.reason)] : []));
      expect(failed).toEqual([expect.arrayContaining(["40001"])]);
      expect(await opened.countRows()).toBe(1);
    });
  });
}
