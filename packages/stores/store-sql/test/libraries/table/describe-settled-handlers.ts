import { beforeEach, afterEach, expect, test } from "@jest/globals";
import { refuse } from "@countersign/idempotency-guard";
import { allowWarnings } from "@countersign/test-support/runs/expect-warning.ts";
import { isWhole } from "@countersign/test-support/runs/share.ts";
import { barrier } from "./describe-database.ts";
import { type OpenStores, openStores, payerOn } from "./payer.ts";
import { describeOn, type Opened, poolSize, type TableRow } from "./row.ts";

/**
 * I26: from the moment in which a handler has settled, or its run is given up, no statement through its `tx` takes effect. Each test ends
 * with what is in the table, and with a retry.
 */
export function describeSettledHandlers<Tx>(row: TableRow<Tx>): void {
  let opened: Opened<Tx>;
  let stores: OpenStores<Tx>;
  const pause = row.engine === "postgresql" ? "SELECT pg_sleep(0.05)::text" : "SELECT SLEEP(0.05)";
  const insert = async (tx: Tx, id: string): Promise<void> => {
    await opened.insertByHandler(tx, id);
    await opened.database.flush?.(tx);
  };
  /** What a payment does: some reads, and then it writes. */
  const debit = async (tx: Tx, id: string, reads: number): Promise<void> => {
    for (let read = 0; read < reads; read += 1) {
      // oxlint-disable-next-line no-await-in-loop -- one statement after the other
      await opened.exec(tx, `SELECT ${read}`);
    }
    await insert(tx, id);
  };
  /** Settles with what the branches of handlers did that went on. */
  const branches: Promise<unknown>[] = [];
  const branch = (work: Promise<unknown>): Promise<unknown> => {
    branches.push(work.catch(() => {}));
    return work;
  };

  describeOn(row.engine)(`a handler of ${row.name} that has settled`, () => {
    beforeEach(async () => {
      // What operators are told: each test asserts what becomes of key and rows.
      allowWarnings(/^\[nothing-written\]|\blate-statement\b|^\[transaction-/);
      opened = await row.open();
      stores = await openStores(opened.database, { maxTransactions: poolSize });
      await payerOn(stores, (tx, key) => opened.insertByHandler(tx, key))("warm");
    });
    afterEach(async () => {
      await Promise.all(branches.splice(0));
      await stores.close();
      await opened.end();
    });

    test.each([
      ["an error", () => new Error("the limits could not be read"), "the limits could not be read"],
      ["a refusal", () => refuse("over-limit"), "over-limit"],
    ] as const)(
      "by %s of one branch lets no statement of another branch take effect",
      async (_name, errorOf, answer) => {
        for (const reads of [0, 1, 2, 3]) {
          const key = `all ${reads}`;
          let runs = 0;
          const pay = payerOn(stores, async (tx) => {
            runs += 1;
            const isFirst = runs === 1;
            const check = async (): Promise<void> => {
              await opened.exec(tx, "SELECT 4");
              if (isFirst) throw errorOf();
            };
            await Promise.all([branch(debit(tx, key, reads)), check()]);
          });
          // oxlint-disable-next-line no-await-in-loop -- one payment after the other
          expect([reads, await pay(key)]).toEqual([reads, answer]);
          // oxlint-disable-next-line no-await-in-loop -- as above
          await Promise.all(branches.splice(0));
          // oxlint-disable-next-line no-await-in-loop -- as above
          expect([reads, await rows(key)]).toEqual([reads, 0]);
          // oxlint-disable-next-line no-await-in-loop -- as above
          expect([reads, await pay(key), await rows(key)]).toEqual([reads, 200, 1]);
        }
      },
    );

    test("by a race with a time-out pays only when it is retried", async () => {
      let runs = 0;
      const pay = payerOn(stores, async (tx, key) => {
        runs += 1;
        if (runs > 1) return insert(tx, key);
        const work = branch(
          (async () => {
            await opened.exec(tx, pause);
            await insert(tx, key);
          })(),
        );
        // The time-out comes while a statement is on its way.
        await Promise.race([work, Promise.resolve().then(() => Promise.reject(new Error("timed out")))]);
      });
      expect(await pay("race")).toBe("timed out");
      await Promise.all(branches.splice(0));
      expect(await rows("race")).toBe(0);
      expect([await pay("race"), await rows("race")]).toEqual([200, 1]);
    });

    test("with a statement on its way has failed, and its key is free", async () => {
      let runs = 0;
      const pay = payerOn(stores, async (tx, key) => {
        runs += 1;
        await insert(tx, key);
        if (runs === 1) void branch(Promise.resolve(opened.exec(tx, pause)));
        // A lazy library sends it in another turn.
        await new Promise((resolve) => setImmediate(resolve));
      });
      expect(await pay("on its way")).toBe("transaction-broken");
      expect(await rows("on its way")).toBe(0);
      expect([await pay("on its way"), await rows("on its way")]).toEqual([200, 1]);
    });

    test("successfully sends nothing any more, also while others use its connection", async () => {
      const kept: Tx[] = [];
      const pay = payerOn(stores, async (tx, key) => {
        kept.push(tx);
        await insert(tx, key);
      });
      expect(await pay("kept")).toBe(200);
      const all = barrier(poolSize);
      const others = Array.from({ length: poolSize }, (_, index) =>
        payerOn(stores, async (tx, key) => {
          await insert(tx, key);
          await all();
          if (index === 0) await expect(insert(kept[0] as Tx, "late")).rejects.toThrow();
        })(`other ${index}`),
      );
      expect(await Promise.all(others)).toEqual(others.map(() => 200));
      await expect(insert(kept[0] as Tx, "late")).rejects.toThrow();
      expect(await rows("late")).toBe(0);
    });

    test("is repeated after a conflict, and a branch of its first run writes nothing", async () => {
      let runs = 0;
      const pay = payerOn(stores, async (tx, key) => {
        runs += 1;
        const conflict = async (): Promise<void> => {
          await opened.exec(tx, "SELECT 4");
          throw row.engine === "postgresql"
            ? Object.assign(new Error("could not serialize access"), { code: "40001" })
            : Object.assign(new Error("Deadlock found"), { errno: 1213, sqlState: "40001" });
        };
        await (runs === 1 ? Promise.all([branch(debit(tx, key, 3)), conflict()]) : insert(tx, key));
      });
      expect(await pay("repeated")).toBe(200);
      await Promise.all(branches.splice(0));
      expect([runs, await rows("repeated")]).toEqual([2, 1]);
      expect(await pay("repeated")).toBe("already-processed");
    });

    test("too late writes nothing: its run was given up", async () => {
      let goOn = (): void => {};
      const late = new Promise<void>((resolve) => {
        goOn = resolve;
      });
      const pay = payerOn(
        stores,
        async (tx, key) => {
          await opened.exec(tx, "SELECT 1");
          await late;
          await branch(insert(tx, key));
        },
        { transactionTimeoutMs: 300 },
      );
      expect(await pay("late")).toBe("transaction-timed-out");
      goOn();
      await eventuallyFree();
      expect(await rows("late")).toBe(0);
      expect(await payerOn(stores, insert)("late")).toBe(200);
    });

    test("in real deadlocks leaves the pool whole", async () => {
      const rounds = isWhole ? 100 : 10;
      await opened.database.run(async (tx) => {
        await insert(tx, "a");
        await insert(tx, "b");
      });
      const lock = (tx: Tx, id: string) =>
        opened.exec(tx, `UPDATE ${opened.table} SET parent = NULL WHERE id = '${id}'`);
      for (let round = 0; round < rounds; round += 1) {
        let met = 0;
        const both = barrier(2);
        const payers = [["a", "b"] as const, ["b", "a"] as const].map(([first, second]) =>
          payerOn(stores, async (tx, key) => {
            if (row.engine === "postgresql") await opened.exec(tx, "SET LOCAL deadlock_timeout = '10ms'");
            await lock(tx, first);
            met += 1;
            if (met <= 2) await both();
            await lock(tx, second);
            await insert(tx, key);
          })(`deadlock ${round} ${first}`),
        );
        // oxlint-disable-next-line no-await-in-loop -- one deadlock after the other
        expect([round, ...(await Promise.all(payers))]).toEqual([round, 200, 200]);
      }
      const all = barrier(poolSize);
      const whole = Array.from({ length: poolSize }, (_, index) =>
        payerOn(stores, async (tx, key) => {
          await insert(tx, key);
          await all();
        })(`whole ${index}`),
      );
      expect(await Promise.all(whole)).toEqual(whole.map(() => 200));
    }, 120_000);

    describeWrites();
  });

  /** I28. */
  function describeWrites(): void {
    const mustWrite = (handler: (tx: Tx, key: string) => unknown) => payerOn(stores, handler, {}, true);

    test.each([
      ["nothing", () => undefined],
      ["nothing but a read", (tx: Tx) => opened.exec(tx, "SELECT 1")],
      ["nothing by an UPDATE without a row", (tx: Tx) => opened.exec(tx, unmatched())],
      ["nothing but a lock", (tx: Tx) => opened.exec(tx, `SELECT id FROM ${opened.table} FOR UPDATE`)],
      ["what another connection writes", (_tx: Tx, key: string) => writeElsewhere(key)],
    ] as const)("that wrote %s is not confirmed, and its key is held", async (_name, handler) => {
      const pay = mustWrite((tx, key) => handler(tx, key));
      expect(await pay("unwritten")).toBe("nothing-written");
      expect(await pay("unwritten")).toBe("held");
      const record = await stores.idempotency.read("payments:unwritten");
      expect(record).toMatchObject({ state: "held", reason: "nothing-written" });
      // Another one, on the same connections.
      expect(await mustWrite(insert)("written")).toBe(200);
    });

    test("that wrote a row after it had matched none is confirmed", async () => {
      const pay = mustWrite(async (tx, key) => {
        await opened.exec(tx, unmatched());
        await insert(tx, key);
      });
      expect(await pay("written")).toBe(200);
    });

    if (row.engine === "postgresql") {
      test("that wrote by a function, or inside of a SELECT, is confirmed", async () => {
        const { database, table } = opened;
        const name = `pay_${table.replaceAll(/\W/g, "_")}`;
        await database.alone(
          `CREATE FUNCTION ${name}(id text) RETURNS void LANGUAGE plpgsql AS $$ BEGIN INSERT INTO ${table} VALUES (id); END $$`,
          [],
        );
        try {
          const byFunction = mustWrite((tx, key) => opened.exec(tx, `SELECT ${name}('${key}')::text`));
          expect(await byFunction("by a function")).toBe(200);
          const inSelect = mustWrite((tx, key) =>
            opened.exec(
              tx,
              `WITH paid AS (INSERT INTO ${table} VALUES ('${key}') RETURNING id) SELECT id FROM paid`,
            ),
          );
          expect(await inSelect("in a SELECT")).toBe(200);
          expect(await rows("by a function")).toBe(1);
        } finally {
          await database.alone(`DROP FUNCTION ${name}`, []);
        }
      });

      test.each(["off", "local"])(
        "that sets synchronous_commit = %s commits as the server was set",
        async (level) => {
          const seen: unknown[] = [];
          const { database } = opened;
          const watching = {
            ...database,
            query: async (tx: Tx, text: string, values: Parameters<typeof database.query>[2]) => {
              const result = await database.query(tx, text, values);
              if (/ SET [^;]*state = 'done'/.test(text)) {
                seen.push(...(await database.query(tx, "SHOW synchronous_commit", [])));
              }
              return result;
            },
          };
          // Statement by statement.
          Reflect.deleteProperty(watching, "script");
          const slow = await openStores(watching);
          try {
            const pay = payerOn(slow, async (tx, key) => {
              await opened.exec(tx, `SET LOCAL synchronous_commit = ${level}`);
              await insert(tx, key);
            });
            expect(await pay("durable")).toBe(200);
            expect(seen.map((one) => Object.values(Object(one))[0])).toEqual(["on"]);
          } finally {
            await slow.close();
          }
        },
      );
    }
  }

  function unmatched(): string {
    return `UPDATE ${opened.table} SET parent = NULL WHERE id = 'of nobody'`;
  }

  function writeElsewhere(id: string): Promise<unknown> {
    return opened.database.alone(`INSERT INTO ${opened.table} (id) VALUES ('${id}')`, []);
  }

  async function rows(id: string): Promise<number> {
    const [found] = await opened.database.alone(
      `SELECT count(*) AS count FROM ${opened.table} WHERE id = '${id}'`,
      [],
    );
    const [count] = Object.values(Object(found));
    return Number(count);
  }

  /** Until the transaction that was given up has ended, its row is locked. */
  async function eventuallyFree(): Promise<void> {
    await Promise.all(branches.splice(0));
    await opened.database.alone("SELECT 1", []);
  }
}
