import { fromPg } from "@countersign/store-sql/pg";
import type { Database } from "@countersign/idempotency";
import type { Row } from "@countersign/idempotency/store";
import { describe, expect, test } from "@jest/globals";
import { describeOnPostgres } from "@countersign/test-support/servers/engines.ts";
import type { PoolClient } from "pg";
import { connectPool } from "./connections.ts";
import { claimOf, keyOf, libraries, newPayouts, pastGate, payIn, refuseIn } from "./payouts.ts";

type Wrap = (database: Database<PoolClient>) => Partial<Database<PoolClient>>;

const nothing = (): Promise<void> => Promise.resolve();
const broken = expect.objectContaining({ code: "transaction-broken", status: 500 });

/** Stands for a library that takes every answer to COMMIT for a commit. */
function silent(database: Database<PoolClient>): Database<PoolClient> {
  const { run } = database;
  return {
    ...database,
    tellsRollback: undefined,
    async run(work) {
      let done: { readonly result: Awaited<ReturnType<typeof work>> } | undefined;
      try {
        return await run(async (tx) => {
          const result = await work(tx);
          done = { result };
          return result;
        });
      } catch (error) {
        if (done !== undefined && Object(error).code === "25P02") return done.result;
        throw error;
      }
    },
  };
}

function lost(): never {
  throw new Error("Connection terminated unexpectedly");
}

describeOnPostgres("the commit of a library that does not tell a ROLLBACK", () => {
  describe.each(libraries)("with %s", (_library, as) => {
    async function setUp(wrap: Wrap = () => ({})) {
      const plain = silent(as(fromPg(connectPool({ max: 20 }))));
      const payouts = await newPayouts({ database: { ...plain, ...wrap(plain) } });
      const { transactions, write } = payouts;
      /** Pays, and lets the statement come between the last one of ours and COMMIT. */
      const payThen = async (late: (tx: PoolClient) => Promise<unknown>): Promise<unknown> => {
        const paying = transactions.run(async (tx) => {
          const key = keyOf("k");
          await transactions.begin(tx, claimOf([key]));
          await write(tx, "k");
          await transactions.keep(tx, [key], false);
          await late(tx);
          return "paid";
        });
        return paying.catch((error: unknown) => error);
      };
      const retry = async () => (await payIn(transactions, claimOf([keyOf("k")]), nothing)).keys[0]?.status;
      return { ...payouts, payThen, retry };
    }

    test.each<[string, string]>([
      ["fails", "SELECT 1 / 0"],
      ["is ROLLBACK", "ROLLBACK"],
      ["is ROLLBACK, and begins another transaction", "ROLLBACK; BEGIN"],
    ])("finds that a late statement %s: nothing is paid, for certain", async (_case, sql) => {
      const { payThen, retry, paid, transactions } = await setUp();
      const error = await payThen((tx) => pastGate(tx, sql).catch(() => {}));
      expect(error).toEqual(broken);
      expect(transactions.faultOf(error)).toBeUndefined();
      expect(await paid()).toEqual([]);
      expect(await retry()).toBe("begun");
    });

    test.each<[string, string]>([
      ["is COMMIT", "COMMIT"],
      ["is COMMIT, and begins another transaction", "COMMIT; BEGIN"],
      ["writes", "SELECT set_config('countersign.late', 'yes', true)"],
    ])("finds that a late statement %s: it is paid", async (_case, sql) => {
      const { payThen, retry, paid } = await setUp();
      expect(await payThen((tx) => pastGate(tx, sql))).toBe("paid");
      expect(await paid()).toEqual(["k"]);
      expect(await retry()).toBe("done");
    });

    test("finds it also behind a key that was given back, and one of several that was paid", async () => {
      const { transactions, write, paid, idempotency } = await setUp();
      const keys = ["a", "b"].map(keyOf);
      const run = transactions.run(async (tx) => {
        await transactions.begin(tx, claimOf(keys));
        await write(tx, "a");
        await transactions.keep(tx, keys.slice(0, 1), true);
        await transactions.free(tx, keys.slice(1));
        await tx.query("SELECT 1 / 0").catch(() => {});
      });
      await expect(run).rejects.toEqual(broken);
      expect(await paid()).toEqual([]);
      expect(await idempotency.read("a")).toBeUndefined();
      await refuseIn(transactions, claimOf(keys), nothing);
    });

    test("rejects with the error of a COMMIT that is refused, which undoes all", async () => {
      const { pool, schema, payThen, retry, paid, transactions } = await setUp();
      // What it defers while it is checked fails at COMMIT.
      await pool.query(
        `CREATE FUNCTION ${schema}.defer() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN
           SET CONSTRAINTS ALL DEFERRED;
           IF new.late IS NULL THEN INSERT INTO ${schema}.payouts (id, late) VALUES ('a', 'same'), ('b', 'same'); END IF;
           RETURN NULL;
         END$$;
         CREATE CONSTRAINT TRIGGER defer AFTER INSERT ON ${schema}.payouts DEFERRABLE INITIALLY DEFERRED
         FOR EACH ROW EXECUTE FUNCTION ${schema}.defer()`,
      );
      const error = await payThen(nothing);
      expect(error).toMatchObject({ code: "23505" });
      expect(transactions.faultOf(error)).toBe("refused");
      expect(await paid()).toEqual([]);
      await pool.query(`DROP TRIGGER defer ON ${schema}.payouts`);
      expect(await retry()).toBe("begun");
    });

    test("rejects with a serialization failure of COMMIT, so that all of it runs again", async () => {
      const { transactions, another, schema, paid } = await setUp();
      const config = { options: "-c default_transaction_isolation=serializable" };
      const { transactions: strict } = another({ database: silent(as(fromPg(connectPool(config)))) });
      let arrive = (): void => {};
      const bothHere = new Promise<void>((resolve) => {
        let missing = 2;
        arrive = () => void (--missing === 0 && resolve());
      });
      const paying = ["a", "b"].map((id) =>
        payIn(strict, claimOf([keyOf(id)]), async (tx) => {
          await tx.query(`SELECT count(*) FROM ${schema}.payouts`);
          await tx.query(`INSERT INTO ${schema}.payouts (id) VALUES ($1)`, [id]);
          arrive();
          await bothHere;
        }),
      );
      const failed = (await Promise.allSettled(paying)).filter((each) => each.status === "rejected");
      expect(failed.map(({ reason }) => transactions.faultOf(reason))).toEqual(["conflict"]);
      expect(await paid()).toHaveLength(1);
    });

    test("that is answered stays one, whatever becomes of the library's own", async () => {
      let isArmed = false;
      const { payThen, paid, retry } = await setUp((plain) => ({
        async run(work) {
          const result = await plain.run(work);
          if (isArmed) lost();
          return result;
        },
      }));
      expect(await payThen(() => Promise.resolve((isArmed = true)))).toBe("paid");
      isArmed = false;
      expect(await paid()).toEqual(["k"]);
      expect(await retry()).toBe("done");
    });

    const unsaid = (rows: readonly Row[]): readonly Row[] =>
      rows.map((row) => ({ ...row, ...("outcome" in row && { outcome: null }) }));

    test.each<[string, typeof unsaid]>([
      ["the reply to it is lost", lost],
      ["the server does not say what became of it", unsaid],
    ])("is unknown when %s", async (_case, change) => {
      let isArmed = false;
      const changed = async (rows: Promise<readonly Row[]>): Promise<readonly Row[]> =>
        isArmed ? change(await rows) : rows;
      const { payThen, paid, transactions } = await setUp((plain) => ({
        query: (tx, text, values) => changed(plain.query(tx, text, values)),
        ...(plain.script && {
          script: (tx: PoolClient, text: string) => changed(plain.script!(tx, text)),
        }),
      }));
      const error = await payThen(() => Promise.resolve((isArmed = true)));
      expect(transactions.faultOf(error)).toBe("unavailable");
      expect(await paid()).toEqual(["k"]);
    });

    test("knows the transaction of a library whose transactions are functions", async () => {
      const clients = new WeakMap<object, PoolClient>();
      const { transactions, write, idempotency } = await setUp((plain) => {
        const own = (tx: PoolClient): PoolClient => clients.get(tx) ?? tx;
        return {
          run: (work) =>
            plain.run((client) => {
              const tx = Object.assign(() => {}, {
                query: client.query.bind(client),
              }) as unknown as PoolClient;
              clients.set(tx, client);
              return work(tx);
            }),
          query: (tx, text, values) => plain.query(own(tx), text, values),
          ...(plain.script && { script: (tx: PoolClient, text: string) => plain.script!(own(tx), text) }),
        };
      });
      const keys = ["a", "b"].map(keyOf);
      const ended = transactions.run(async (tx) => {
        await transactions.begin(tx, claimOf(keys));
        await write(tx, "a");
        await pastGate(clients.get(tx) ?? tx, "COMMIT");
        await transactions.keep(tx, keys.slice(0, 1), true);
      });
      await expect(ended).rejects.toEqual(broken);
      // Nobody has worked on the second one.
      const states = await Promise.all(["a", "b"].map(async (key) => (await idempotency.read(key))?.state));
      expect(states).toEqual(["held", undefined]);
    });
  });
});
