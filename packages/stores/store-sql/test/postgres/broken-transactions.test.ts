import { fromPg } from "@countersign/store-sql/pg";
import type { Database } from "@countersign/idempotency";
import { describe, expect, test } from "@jest/globals";
import { describeOnPostgres } from "@countersign/test-support/servers/engines.ts";
import type { PoolClient } from "pg";
import { connectPool } from "./connections.ts";
import {
  claimOf,
  keyOf,
  libraries,
  newPayouts,
  nonceOf,
  pastGate,
  payIn,
  refuseIn,
  singly,
} from "./payouts.ts";

const nothing = (): Promise<void> => Promise.resolve();

describeOnPostgres("a handler that breaks its transaction", () => {
  describe.each(libraries)("with %s", (_library, as) => {
    async function setUp() {
      const payouts = await newPayouts({ database: as(fromPg(connectPool())) });
      const begun = async (work: (tx: PoolClient) => Promise<unknown>) => {
        const paying = payIn(payouts.transactions, claimOf([keyOf("k")], { nonce: nonceOf("n") }), work);
        return paying.catch((error: unknown) => error);
      };
      return { ...payouts, begun };
    }

    test("by swallowing an error pays nothing, and is told", async () => {
      const { begun, write, paid, idempotency, transactions } = await setUp();
      const error = await begun(async (tx) => {
        await write(tx, "k");
        await tx.query("SELECT 1 / 0").catch(() => {});
      });
      expect(error).toMatchObject({
        code: "transaction-broken",
        message: expect.stringMatching(/went on after a statement had failed/),
        cause: { code: "25P02" },
      });
      expect(transactions.faultOf(error)).toBeUndefined();
      expect(await paid()).toEqual([]);
      expect(await idempotency.read("k")).toBeUndefined();
    });

    test("by swallowing an error can still be refused: the key is free, and the nonce can be claimed", async () => {
      const { transactions, nonces, idempotency, paid, write } = await setUp();
      const nonce = nonceOf("n");
      await refuseIn(transactions, claimOf([keyOf("k")], { nonce }), async (tx) => {
        await write(tx, "k");
        await tx.query("SELECT 1 / 0").catch(() => {});
      });
      expect(await nonces.claim({ ...nonce, token: "other" })).toBe("fresh");
      expect(await idempotency.read("k")).toBeUndefined();
      expect(await paid()).toEqual([]);
    });

    test.each(["COMMIT", "ROLLBACK", "COMMIT; BEGIN"])(
      "by its own %s, where it has no keys, is told",
      async (sql) => {
        const { transactions } = await setUp();
        const running = transactions.run(async (tx) => {
          await transactions.begin(tx, claimOf([], { nonce: undefined }));
          await pastGate(tx, sql);
          await transactions.keep(tx, [], false);
        });
        await expect(running).rejects.toMatchObject({
          code: "transaction-broken",
          message: expect.stringMatching(/COMMIT or ROLLBACK itself/),
        });
      },
    );

    const held = { state: "held", reason: "transaction-broken" };

    // Whether the first of its two payouts stays, and the second, which it writes afterwards.
    test.each<[string, string, string[]]>([
      ["COMMIT", "COMMIT", ["first", "second"]],
      ["COMMIT, and begins another transaction", "COMMIT; BEGIN", ["first"]],
      ["ROLLBACK", "ROLLBACK", ["second"]],
      ["ROLLBACK, and begins another transaction", "ROLLBACK; BEGIN", []],
      ["COMMIT AND CHAIN", "COMMIT AND CHAIN", ["first"]],
    ])("by its own %s is told, and its key is held: nobody knows what was paid", async (_case, sql, left) => {
      const { begun, write, paid, idempotency, transactions } = await setUp();
      const error = await begun(async (tx) => {
        await write(tx, "first");
        await pastGate(tx, sql);
        await write(tx, "second");
      });
      expect(error).toMatchObject({
        code: "transaction-broken",
        message: expect.stringMatching(/COMMIT or ROLLBACK itself/),
      });
      expect(await paid()).toEqual(left);
      const record = await idempotency.read("k");
      expect(record).toMatchObject(held);
      expect((await payIn(transactions, claimOf([keyOf("k")]), nothing)).keys).toMatchObject([
        { status: "held" },
      ]);
      expect(await idempotency.resolve("k", "released", { fence: record?.fence ?? Number.NaN })).toBe("ok");
      expect((await payIn(transactions, claimOf([keyOf("k")]), nothing)).keys).toEqual([{ status: "begun" }]);
    });

    test.each<[string, string]>([
      ["behind conflicts", `nextval('%.tries') < 4 THEN RAISE EXCEPTION 'test' USING ERRCODE = '40001'`],
      ["durably", "current_setting('synchronous_commit') = 'off' THEN RAISE EXCEPTION 'test'"],
    ])("by its own ROLLBACK has its key held %s", async (_case, refusal) => {
      const off = connectPool({ options: "-c synchronous_commit=off" });
      const { transactions, write, paid, idempotency, pool, schema } = await newPayouts({
        database: as(fromPg(off)),
      });
      await pool.query(
        `CREATE SEQUENCE ${schema}.tries;
         CREATE FUNCTION ${schema}.refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
           IF ${refusal.replace("%", schema)}; END IF; RETURN new; END $$;
         CREATE TRIGGER refuse BEFORE INSERT OR UPDATE ON ${schema}.countersign_idempotency FOR EACH ROW
         WHEN (new.state = 'held') EXECUTE FUNCTION ${schema}.refuse()`,
      );
      const paying = payIn(transactions, claimOf([keyOf("k")]), async (tx) => {
        await pastGate(tx, "ROLLBACK");
        await write(tx, "k");
      });
      await expect(paying).rejects.toMatchObject({ code: "transaction-broken" });
      expect(await paid()).toEqual(["k"]);
      expect(await idempotency.read("k")).toMatchObject(held);
    });

    test("by its own ROLLBACK before it refuses is told as well, and its key is held once", async () => {
      const { transactions, write, paid, idempotency } = await setUp();
      const key = keyOf("k");
      const refused = transactions.run(async (tx) => {
        await transactions.begin(tx, claimOf([key]));
        await pastGate(tx, "ROLLBACK");
        await write(tx, "k");
        await expect(transactions.assertOpen(tx, [key])).rejects.toMatchObject({
          code: "transaction-broken",
        });
        await transactions.assertOpen(tx, [key]);
      });
      await expect(refused).rejects.toMatchObject({ code: "transaction-broken" });
      expect(await paid()).toEqual(["k"]);
      expect(await idempotency.read("k")).toMatchObject(held);
    });

    test.each<[string, string[]]>([
      ["COMMIT", ["a", "b"]],
      ["ROLLBACK", []],
    ])("by its own %s leaves the keys free that nobody has worked on yet", async (sql, left) => {
      const { transactions, write, paid, idempotency } = await setUp();
      const keys = ["a", "b", "c"].map(keyOf);
      const broken = transactions.run(async (tx) => {
        await transactions.begin(tx, claimOf(keys));
        await write(tx, "a");
        await transactions.keep(tx, keys.slice(0, 1), true);
        await write(tx, "b");
        await pastGate(tx, sql);
        await transactions.keep(tx, keys.slice(1, 2), true);
      });
      await expect(broken).rejects.toMatchObject({ code: "transaction-broken" });
      expect(await paid()).toEqual(left);
      const states = await Promise.all(
        ["a", "b", "c"].map(async (key) => (await idempotency.read(key))?.state),
      );
      expect(states).toEqual([left.length > 0 ? "done" : undefined, "held", undefined]);
    });

    test("by its own COMMIT tells that a trigger keeps a key running that nobody has worked on", async () => {
      const { transactions, write, idempotency, pool, schema } = await setUp();
      await pool.query(
        `CREATE FUNCTION ${schema}.keep() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END';
         CREATE TRIGGER keep BEFORE UPDATE ON ${schema}.countersign_idempotency FOR EACH ROW
         WHEN (old.key = 'b') EXECUTE FUNCTION ${schema}.keep()`,
      );
      const keys = ["a", "b"].map(keyOf);
      const broken = transactions.run(async (tx) => {
        await transactions.begin(tx, claimOf(keys));
        await write(tx, "a");
        await pastGate(tx, "COMMIT");
        await transactions.keep(tx, keys.slice(0, 1), true);
      });
      await expect(broken).rejects.toMatchObject({
        code: "transaction-broken",
        cause: {
          errors: [
            expect.anything(),
            { message: expect.stringMatching(/did not free the keys .* triggers/) },
          ],
        },
      });
      const states = await Promise.all(["a", "b"].map(async (key) => (await idempotency.read(key))?.state));
      expect(states).toEqual(["held", "running"]);
    });

    test("does not get a key held that another has paid meanwhile", async () => {
      const { begun, transactions, write, idempotency } = await setUp();
      const other = keyOf("k");
      await begun(async (tx) => {
        await pastGate(tx, "ROLLBACK");
        await payIn(transactions, claimOf([other]), (mine) => write(mine, "other"));
      });
      expect(await idempotency.read("k")).toMatchObject({ state: "done", token: other.token });
    });

    test("by a deferred constraint gets that error, and its key is free", async () => {
      const { transactions, schema, paid, idempotency } = await setUp();
      const late = async (tx: PoolClient, id: string) =>
        tx.query(`INSERT INTO ${schema}.payouts (id, late) VALUES ($1, 'same')`, [id]);
      await payIn(transactions, claimOf([keyOf("first")]), (tx) => late(tx, "first"));
      const key = keyOf("second");
      const run = payIn(transactions, claimOf([key]), (tx) => late(tx, "second"));
      const error: unknown = await run.catch((thrown: unknown) => thrown);
      expect(error).toMatchObject({ code: "23505" });
      expect(transactions.faultOf(error)).toBe("refused");
      expect(await paid()).toEqual(["first"]);
      expect(await idempotency.read("second")).toBeUndefined();
    });

    test("that leaves what a constraint checks in order leaves the constraints of those behind it deferred", async () => {
      const { transactions, schema, paid } = await setUp();
      const keys = ["a", "b", "c"].map(keyOf);
      const [a, b, c] = keys as [(typeof keys)[0], (typeof keys)[0], (typeof keys)[0]];
      const insert = (tx: PoolClient, id: string, late: string) =>
        tx.query(`INSERT INTO ${schema}.payouts (id, late) VALUES ($1, $2)`, [id, late]);
      await transactions.run(async (tx) => {
        await transactions.begin(tx, claimOf(keys));
        await insert(tx, "a", "same");
        await transactions.keep(tx, [a], true);
        await insert(tx, "b", "of its own");
        await transactions.keep(tx, [b], true);
        // For a moment it is there twice.
        await insert(tx, "c", "same");
        await tx.query(`UPDATE ${schema}.payouts SET late = 'other' WHERE id = 'a'`);
        await transactions.keep(tx, [c], false);
      });
      expect(await paid()).toEqual(["a", "b", "c"]);
    });

    test("by a deferred constraint takes back what others wrote in its transaction, and their keys are free", async () => {
      const { transactions, schema, paid, idempotency } = await setUp();
      const keys = ["a", "b"].map(keyOf);
      const insert = (tx: PoolClient, id: string) =>
        tx.query(`INSERT INTO ${schema}.payouts (id, late) VALUES ($1, 'same')`, [id]);
      const run = transactions.run(async (tx) => {
        await transactions.begin(tx, claimOf(keys));
        await insert(tx, "a");
        await transactions.keep(tx, keys.slice(0, 1), true);
        await insert(tx, "b");
        await transactions.keep(tx, keys.slice(1), false);
      });
      await expect(run).rejects.toMatchObject({ code: "23505" });
      expect(await paid()).toEqual([]);
      for (const { key } of keys) expect(await idempotency.read(key)).toBeUndefined();
    });
  });
});

describeOnPostgres("the first transaction of a library", () => {
  async function storesOf(database: Database<PoolClient>) {
    const { another, idempotency } = await newPayouts();
    return { ...another({ database }), first: idempotency };
  }

  test.each<[string, (pool: ReturnType<typeof connectPool>) => Partial<Database<PoolClient>>]>([
    [
      "an autocommit shim",
      (pool) => ({
        async run(work) {
          const client = await pool.connect();
          try {
            return await work(client);
          } finally {
            client.release();
          }
        },
        query: async (tx, text, values) => (await tx.query(text, [...values])).rows,
      }),
    ],
    [
      "an autocommit shim whose statements swallow warnings and take any connection",
      (pool) => ({
        run: async (work) => work(pool as unknown as PoolClient),
        query: async (_tx, text, values) => (await pool.query(text, [...values])).rows,
      }),
    ],
    [
      "a connection for each statement, each with a transaction",
      (pool) => ({
        run: async (work) => work(pool as unknown as PoolClient),
        async query(_tx, text, values) {
          const client = await pool.connect();
          try {
            await client.query("BEGIN");
            if (text.startsWith("RELEASE")) await client.query("SAVEPOINT countersign_probe");
            return (await client.query(text, [...values])).rows;
          } finally {
            client.release(true);
          }
        },
      }),
    ],
  ])("tells %s, and no key is written", async (_case, shim) => {
    const pool = connectPool();
    const { transactions, first } = await storesOf({ ...singly(fromPg(pool)), ...shim(pool) });
    const paid = payIn(transactions, claimOf([keyOf("k")]), nothing);
    await expect(paid).rejects.toThrow(TypeError);
    await expect(payIn(transactions, claimOf([keyOf("k")]), nothing)).rejects.toThrow(
      /pg runs no transaction on one connection/,
    );
    expect(await first.read("k")).toBeUndefined();
  });

  test("tells that it is read only", async () => {
    const { transactions } = await storesOf(
      fromPg(connectPool({ options: "-c default_transaction_read_only=on" })),
    );
    const run = transactions.run(nothing);
    await expect(run).rejects.toThrow(/transactions of pg are read only; connect it to the primary/);
    await expect(run).rejects.not.toBeInstanceOf(TypeError);
  });

  test("is tried again after a failure, and once after that", async () => {
    const database = fromPg(connectPool());
    let runs = 0;
    const { transactions } = await storesOf({
      ...database,
      run: (work) => (runs++ === 0 ? Promise.reject(new Error("Connection terminated")) : database.run(work)),
    });
    const lost: unknown = await transactions.run(nothing).catch((error: unknown) => error);
    expect(transactions.faultOf(lost)).toBe("unavailable");
    await Promise.all([transactions.run(nothing), transactions.run(nothing)]);
    await transactions.run(nothing);
    expect(runs).toBe(1 + 1 + 3);
  });
});
