import { afterEach, beforeEach, describe, expect, test } from "@jest/globals";
import { wrappedErrors, type Row } from "@countersign/idempotency/store";
import { createStores, migrate } from "@countersign/store-sql";
import { mysqlEngine } from "@countersign/test-support/servers/engines.ts";
import {
  describeOn,
  dropTables,
  endSession,
  type Feature,
  type Opened,
  poolSize,
  type TableRow,
  unusedTable,
} from "./row.ts";

/** What each adapter has to do, with the library and a server. */
export function describeDatabase<Tx>(row: TableRow<Tx>): void {
  describeOn(row.engine)(row.name, () => defineDatabase(row));
}

function defineDatabase<Tx>(row: TableRow<Tx>): void {
  const onPostgresql = row.engine === "postgresql" ? test : notAsked;
  const isOnMysql = row.engine === "mysql" && mysqlEngine === "mysql";
  const onMysql = row.engine === "mysql" ? test : notAsked;
  const [p1, p2] = row.engine === "postgresql" ? ["$1", "$2"] : ["?", "?"];
  const unlessLacking = (feature: Feature) => (row.lacks?.includes(feature) ? notAsked : test);
  let opened: Opened<Tx>;

  beforeEach(async () => {
    opened = await row.open();
  });
  afterEach(() => opened.end());

  const insert = (tx: Tx, id: string, parent: string | null = null) =>
    opened.database.query(tx, `INSERT INTO ${opened.table} (id, parent) VALUES (${p1}, ${p2})`, [id, parent]);
  const send = (tx: Tx, text: string) => opened.database.query(tx, text, []);

  const insertNow = async (tx: Tx, id: string) => {
    await opened.insertByHandler(tx, id);
    await opened.database.flush?.(tx);
  };

  test("creates the stores' tables, also where they are there, and createStores() is ready on them", async () => {
    const { database } = opened;
    const name = unusedTable();
    const tables = row.engine === "postgresql" ? { schema: name } : { table: name };
    try {
      await migrate(database, tables);
      await migrate(database, tables);
      const stores = createStores({ database, pruneIntervalMs: 0, ...tables });
      await stores.ready();
      expect(await stores.nonces.claim({ scope: "s", nonce: "n", token: "t", retainMs: 1_000 })).toBe(
        "fresh",
      );
      stores.close();
    } finally {
      await dropTables(database, name);
    }
  });

  describe("in one transaction", () => {
    test("commits both sides and resolves to the result of the work", async () => {
      const result = await opened.database.run(async (tx) => {
        await insert(tx, "key");
        await opened.insertByHandler(tx, "payment");
        return ["done"];
      });
      expect(result).toEqual(["done"]);
      expect(await opened.countRows()).toBe(2);
    });

    test("shows the next statement what the handler wrote", async () => {
      const rows = await opened.database.run(async (tx) => {
        await insertNow(tx, "payment");
        return send(tx, `SELECT id AS payment_id FROM ${opened.table}`);
      });
      expect(rows.map((each) => ({ ...each }))).toEqual([{ payment_id: "payment" }]);
    });

    test("rolls back and rejects with the work's own error", async () => {
      const thrown = new Error("not paid");
      const running = opened.database.run(async (tx) => {
        await insert(tx, "key");
        await opened.insertByHandler(tx, "payment");
        throw thrown;
      });
      await expect(running).rejects.toBe(thrown);
      expect(await opened.countRows()).toBe(0);
    });

    test("rolls back after a statement that fails", async () => {
      const running = opened.database.run(async (tx) => {
        await insert(tx, "key");
        await insert(tx, "key");
      });
      const error = await running.catch((caught: unknown) => caught);
      expect(statesOf(error)).toContain(row.engine === "postgresql" ? "23505" : "23000");
      expect(await opened.countRows()).toBe(0);
    });

    onPostgresql("rejects RELEASE SAVEPOINT after an error that the handler swallows", async () => {
      const running = opened.database.run(async (tx) => {
        await insert(tx, "key");
        await send(tx, "SAVEPOINT countersign");
        await insert(tx, "key").catch(() => {});
        await send(tx, "RELEASE SAVEPOINT countersign");
      });
      const error = await running.catch((caught: unknown) => caught);
      expect(statesOf(error)).toContain("25P02");
      expect(await opened.countRows()).toBe(0);
    });

    onPostgresql("rejects when COMMIT is refused", async () => {
      const running = opened.database.run((tx) => insert(tx, "key", "no parent"));
      const error = await running.catch((caught: unknown) => caught);
      expect(statesOf(error)).toContain("23503");
      expect(await opened.countRows()).toBe(0);
    });

    test("lets the caller recognise a deadlock", async () => {
      await opened.database.run(async (tx) => {
        await insert(tx, "a");
        await insert(tx, "b");
      });
      const both = barrier(2);
      const lock = (tx: Tx, id: string) =>
        send(tx, `UPDATE ${opened.table} SET parent = NULL WHERE id = '${id}'`);
      const results = await Promise.allSettled(
        [["a", "b"] as const, ["b", "a"] as const].map(([first, second]) =>
          opened.database.run(async (tx) => {
            await lock(tx, first);
            await both();
            await lock(tx, second);
          }),
        ),
      );
      const failed = results.flatMap((each) => (each.status === "rejected" ? [statesOf(each.reason)] : []));
      expect(failed).toHaveLength(1);
      expect(failed[0]).toContain(row.engine === "postgresql" ? "40P01" : "40001");
    });

    test("refuses what is no open transaction", async () => {
      // As a caller without types.
      const stranger = opened.nonTransaction as Tx;
      const refused = () => opened.database.query(stranger, "SELECT 1", []);
      await expect(refused()).rejects.toThrow(TypeError);
      await expect(opened.database.run(refused)).rejects.toThrow(TypeError);
      const ended = await opened.database.run(async (tx) => [tx]);
      for (const tx of ended) {
        await expect(insert(tx, "late")).rejects.toThrow();
      }
      expect(await opened.countRows()).toBe(0);
    });

    test("refuses the library's own statements after the end", async () => {
      const ended = await opened.database.run(async (tx) => [tx]);
      for (const tx of ended) await expect(insertNow(tx, "late")).rejects.toThrow();
      expect(await opened.countRows()).toBe(0);
    });

    unlessLacking("nesting")("takes a nested transaction of the library", async () => {
      await opened.database.run(async (tx) => {
        const nested = opened.nest?.(tx, async (inner) => {
          await insert(inner, "undone");
          await insertNow(inner, "undone too");
          throw new Error("not paid");
        });
        await expect(nested).rejects.toThrow("not paid");
        await opened.nest?.(tx, (inner) => insertNow(inner, "payment"));
        await insert(tx, "key");
      });
      expect(await opened.countRows()).toBe(2);
    });

    test("keeps concurrent transactions apart", async () => {
      const ids = Array.from({ length: 5 * poolSize }, (_, index) => `payment ${index}`);
      const isPaid = (index: number): boolean => index % 2 === 0;
      const ended = await Promise.allSettled(
        ids.map((id, index) =>
          opened.database.run(async (tx) => {
            await opened.insertByHandler(tx, id);
            await insert(tx, `key of ${id}`);
            if (!isPaid(index)) throw new Error("not paid");
          }),
        ),
      );
      const errors = ended.map((each) => (each.status === "rejected" ? String(each.reason) : undefined));
      expect(errors).toEqual(ids.map((_, index) => (isPaid(index) ? undefined : "Error: not paid")));
      expect(await opened.countRows()).toBe(ids.length);
    });

    test("commits by itself what is sent alone", async () => {
      const running = opened.database.run(async (tx) => {
        await insert(tx, "key");
        await opened.database.alone(`INSERT INTO ${opened.table} (id) VALUES (${p1})`, ["nonce"]);
        throw new Error("not paid");
      });
      await expect(running).rejects.toThrow("not paid");
      expect(await opened.countRows()).toBe(1);
    });

    // MySQL has no RETURNING, and takes no compound statement.
    const unlessMysql = isOnMysql ? notAsked : test;
    unlessMysql("returns the rows of RETURNING", async () => {
      const rows = await opened.database.run((tx) =>
        opened.database.query(tx, `INSERT INTO ${opened.table} (id) VALUES (${p1}) RETURNING id`, ["key"]),
      );
      expect(rows.map((each) => ({ ...each }))).toEqual([{ id: "key" }]);
    });

    onPostgresql("returns the rows of UPDATE ... RETURNING", async () => {
      const rows = await opened.database.run(async (tx) => {
        await insert(tx, "key");
        return send(tx, `UPDATE ${opened.table} SET id = 'other' RETURNING id`);
      });
      expect(rows.map((each) => ({ ...each }))).toEqual([{ id: "other" }]);
    });

    onMysql("tells how many rows a statement has changed, by itself and in the transaction", async () => {
      const { database, table } = opened;
      const insertion = `INSERT INTO ${table} (id) VALUES (?), (?)`;
      const update = `UPDATE ${table} SET parent = ? WHERE id = ?`;
      const bytes = Uint8Array.of(39, 92, 1).subarray(0, 2);
      expect(await database.change?.(insertion, ["a", bytes])).toBe(2);
      const running = database.run(async (tx) => {
        const changed = [
          await database.change?.(update, ["p", "a"], { tx }),
          await database.change?.(update, ["p", bytes], { tx }),
          await database.change?.(update, ["p", "none"], { tx }),
        ];
        throw new Error(changed.join(" "));
      });
      await expect(running).rejects.toThrow("1 1 0");
      // Rolled back: the row changes again, also where what stays as it was does not count.
      expect(await database.change?.(update, ["p", "a"])).toBe(1);
      expect(await database.change?.(update, ["p", "none"])).toBe(0);
      const twice = await database.change?.(insertion, ["b", "a"]).catch(statesOf);
      expect(twice).toContain("23000");
      expect(await opened.countRows()).toBe(2);
      const select = database.change?.("SELECT 1", []);
      await expect(select).rejects.toThrow(/returned no number of changed rows/);
      // As a caller without types.
      const tx = opened.nonTransaction as Tx;
      await expect(database.change?.(update, ["q", "a"], { tx })).rejects.toThrow(TypeError);
      expect(await database.change?.(update, ["q", "a"])).toBe(1);
    });

    test("sends values as they are", async () => {
      const hostile = "it's $1 $$ ? :id \\ \" % ünïcödé 🚀";
      const bytes = Uint8Array.of(0, 39, 92, 255);
      const values = [hostile, bytes, null, 41.5, true, '{"a":"b"}'];
      const text =
        row.engine === "postgresql"
          ? `SELECT $1::text AS text, encode($2::bytea, 'hex') AS bytes, $3::text AS nothing, $4::float8 AS number, $5::boolean AS is_true, $6::jsonb->>'a' AS member, 'it $x $$ :id' AS literal`
          : `SELECT ? AS text, LOWER(HEX(?)) AS bytes, ? AS nothing, ? + 0e0 AS number, ? AS is_true, JSON_VALUE(?, '$.a') AS member, 'it $x $$ :id' AS literal`;
      const expected = {
        text: hostile,
        bytes: "00275cff",
        nothing: null,
        number: 41.5,
        is_true: row.engine === "postgresql" ? true : 1,
        member: "b",
        literal: "it $x $$ :id",
      };
      const within = await opened.database.run((tx) => opened.database.query(tx, text, values));
      const outside = await opened.database.alone(text, values);
      // MySQL gives a parameter back in the type in which the driver has sent it.
      const numbered = (each: Row | undefined) =>
        isOnMysql ? { ...each, is_true: Number(each?.["is_true"]) } : { ...each };
      expect([within, outside].map(([each]) => numbered(each))).toEqual([expected, expected]);
    });

    (isOnMysql ? notAsked : unlessLacking("script"))(
      "sends a script of several statements in one message",
      async () => {
        const { database, table } = opened;
        const rows = await database.run(async (tx) => {
          await insertNow(tx, "payment");
          return database.script?.(
            tx,
            `SAVEPOINT a; INSERT INTO ${table} (id) VALUES ('key'); SELECT count(*) AS row_count, '$1 ?' AS literal FROM ${table}; RELEASE SAVEPOINT a`,
          );
        });
        expect(rows?.map((each) => ({ ...each, row_count: Number(each["row_count"]) }))).toEqual([
          { row_count: 2, literal: "$1 ?" },
        ]);
        const single = await database.run(async (tx) =>
          database.script?.(tx, `SELECT id FROM ${table} ORDER BY id`),
        );
        expect(single?.map((each) => ({ ...each }))).toEqual([{ id: "key" }, { id: "payment" }]);
      },
    );

    test("sends nothing after its connection was lost", async () => {
      const { database } = opened;
      const running = database.run(async (tx) => {
        await insert(tx, "key");
        const isPostgresql = row.engine === "postgresql";
        const [self] = await send(
          tx,
          `SELECT ${isPostgresql ? "pg_backend_pid()" : "CONNECTION_ID()"} AS id`,
        );
        const id = Number(self?.["id"]);
        const alone = (text: string) => database.alone(text, []);
        await (isPostgresql ? endSession(alone, id) : alone(`KILL ${id}`));
        // Others take the connections of the pool, also the lost one's place.
        await Promise.all(Array.from({ length: 2 * poolSize }, () => database.alone("SELECT 1", [])));
        await expect(insert(tx, "late")).rejects.toThrow();
        await insertNow(tx, "payment");
      });
      const error = await running.catch((caught: unknown) => caught);
      const messages = wrappedErrors(error).map((each) => String(Reflect.get(each, "message")));
      expect(messages.join("; ")).toMatch(/connection|closed|released/i);
      expect(await opened.countRows()).toBe(0);
    });
  });
}

/** In place of a test that the row says it cannot pass. */
export function notAsked(_title: string, _work: () => Promise<void>): void {}

export function statesOf(error: unknown): unknown[] {
  return wrappedErrors(error).flatMap((each) =>
    ["code", "sqlState", "originalCode"].map((name) => Reflect.get(each, name)),
  );
}

/** Resolves for all when `count` have come. */
export function barrier(count: number): () => Promise<void> {
  let open = (): void => {};
  let missing = count;
  const opened = new Promise<void>((resolve) => {
    open = resolve;
  });
  return () => {
    missing -= 1;
    if (missing === 0) open();
    return opened;
  };
}
