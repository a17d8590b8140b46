import { fromPg } from "@countersign/store-sql/pg";
import type { TransactionClaim } from "@countersign/idempotency";
import { expect, test } from "@jest/globals";
import { describeOnPostgres } from "@countersign/test-support/servers/engines.ts";
import type { PoolClient } from "pg";
import { connectPool } from "./connections.ts";
import { type Payouts, claimOf, keyOf, newPayouts, nonceOf, payIn } from "./payouts.ts";

type Stores = Pick<Payouts, "transactions">;

/** As the kernel does it: the whole again after a conflict. */
async function payAgain(
  { transactions }: Stores,
  claim: () => TransactionClaim,
  work: (tx: PoolClient) => Promise<unknown>,
): Promise<{ readonly statuses: readonly string[]; readonly conflicts: number }> {
  for (let conflicts = 0; ; conflicts++) {
    try {
      // oxlint-disable-next-line no-await-in-loop -- one attempt after the other
      const { keys } = await payIn(transactions, claim(), work);
      return { statuses: keys.map(({ status }) => status), conflicts };
    } catch (error) {
      if (transactions.faultOf(error) !== "conflict" || conflicts > 100) throw error;
    }
  }
}

describeOnPostgres("payments of several processes at once", () => {
  test.each(["read committed", "repeatable read", "serializable"])(
    "pay each key once, %s",
    async (isolation) => {
      const options = `-c default_transaction_isolation=${isolation.replace(" ", String.raw`\ `)}`;
      const { another, write, paid, idempotency } = await newPayouts({}, { options });
      const processes = [another(), another()];
      const names = Array.from({ length: 10 }, (_, index) => `k${index}`);
      const results = await Promise.all(
        names.flatMap((name) =>
          [0, 1, 2, 3].map(async (copy) => {
            const stores = processes[copy % 2] as Stores;
            const claim = () => claimOf([keyOf(name)], { nonce: nonceOf(`${name} ${copy}`) });
            return payAgain(stores, claim, (tx) => write(tx, name));
          }),
        ),
      );
      expect(await paid()).toEqual(names);
      const statuses = results.flatMap((result) => result.statuses);
      expect(statuses.filter((status) => status === "begun")).toHaveLength(names.length);
      expect(statuses.filter((status) => status === "done")).toHaveLength(3 * names.length);
      expect(await idempotency.read("k0")).toMatchObject({ state: "done" });
    },
  );

  test("take many keys in opposite orders without a deadlock", async () => {
    const { another, write, paid } = await newPayouts();
    const processes = [another(), another()];
    const names = Array.from({ length: 50 }, (_, index) => `k${String(index).padStart(2, "0")}`);
    const backwards = names.map((_name, index) => names[names.length - 1 - index] ?? "");
    const results = await Promise.all(
      Array.from({ length: 12 }, async (_, index) => {
        const order = index % 2 === 0 ? names : backwards;
        return payAgain(
          processes[index % 2] as Stores,
          () => claimOf(order.map(keyOf)),
          async (tx) => write(tx, `payment ${index}`),
        );
      }),
    );
    expect(results.map(({ conflicts }) => conflicts)).toEqual(Array.from({ length: 12 }, () => 0));
    expect(results.filter(({ statuses }) => statuses.every((status) => status === "begun"))).toHaveLength(1);
    expect(await paid()).toHaveLength(1);
  });

  test("find a nonce that was used before without a wait for a key that another one pays", async () => {
    const { another, transactions, nonces, write } = await newPayouts();
    await nonces.claim(nonceOf("used"));
    const replay = () => claimOf([keyOf("k")], { nonce: nonceOf("used"), waitMs: 100 });
    let answer: unknown;
    await payIn(transactions, claimOf([keyOf("k")]), async (tx) => {
      await write(tx, "k");
      answer = await payIn(another().transactions, replay(), () => Promise.resolve());
    });
    expect(answer).toEqual({ nonce: "seen", keys: [] });
  });

  test("share their table with lease mode: each key is paid by one of both", async () => {
    const { another, idempotency, write, paid, pool, schema } = await newPayouts();
    const stores = another();
    const names = Array.from({ length: 20 }, (_, index) => `k${String(index).padStart(2, "0")}`);
    const act = (name: string) => pool.query(`INSERT INTO ${schema}.payouts (id) VALUES ($1)`, [name]);
    const lease = async (name: string) => {
      const token = `lease of ${name}`;
      const claim = { token, fingerprint: "f", leaseMs: 60_000, recovery: "rerun" } as const;
      if ((await idempotency.claim(name, claim)).status !== "acquired") return;
      await act(name);
      expect(await idempotency.complete(name, token)).toBe("ok");
    };
    await Promise.all(
      names.flatMap((name) => [
        lease(name),
        payAgain(
          stores,
          () => claimOf([keyOf(name)]),
          (tx) => write(tx, name),
        ),
      ]),
    );
    expect(await paid()).toEqual(names);
    const { rows } = await pool.query(
      `SELECT count(*)::int AS done FROM ${schema}.countersign_idempotency WHERE state = 'done' AND key <> ''`,
    );
    expect(rows).toEqual([{ done: names.length }]);
  });

  test("pay no key twice, and forget none, whatever ends their transactions", async () => {
    const { another, idempotency, write, paid, pool, schema } = await newPayouts();
    const processes = [another(), another()];
    const kill = async (tx: PoolClient): Promise<void> => {
      const { rows } = await tx.query<{ pid: number }>("SELECT pg_backend_pid() AS pid");
      await pool.query("SELECT pg_terminate_backend($1)", [rows[0]?.pid]);
    };
    const ways: readonly ((stores: Stores, name: string) => Promise<unknown>)[] = [
      async ({ transactions }, name) => payIn(transactions, claimOf([keyOf(name)]), (tx) => write(tx, name)),
      async ({ transactions }, name) =>
        payIn(transactions, claimOf([keyOf(name)]), async (tx) => {
          await write(tx, name);
          await kill(tx);
        }),
      async ({ transactions }, name) =>
        payIn(transactions, claimOf([keyOf(name)]), async (tx) => {
          await write(tx, name);
          await transactions.assertOpen(tx, []);
          throw new Error("thrown");
        }),
      async ({ transactions }, name) => {
        const claim = claimOf([keyOf(name)]);
        await transactions.run(async (tx) => {
          const { keys } = await transactions.begin(tx, claim);
          if (keys[0]?.status !== "begun") return;
          await transactions.free(tx, claim.keys);
        });
      },
      async (_stores, name) => {
        const token = `lease ${name} ${Math.random()}`;
        const claim = { token, fingerprint: "f", leaseMs: 20, recovery: "hold" } as const;
        if ((await idempotency.claim(name, claim)).status !== "acquired") return;
        // Its lease may have ended by now: the key is held then, until its owner completes it.
        await pool.query(`INSERT INTO ${schema}.payouts (id) VALUES ($1)`, [name]);
        await idempotency.complete(name, token);
      },
      async (_stores, name) => {
        // A process that died.
        await idempotency.claim(name, {
          token: `dead ${name}`,
          fingerprint: "f",
          leaseMs: 1,
          recovery: "rerun",
        });
      },
    ];
    const names = Array.from({ length: 8 }, (_, index) => `k${index}`);
    const attempt = async (index: number): Promise<void> => {
      const way = ways[(index * 7 + Math.floor(index / 8)) % ways.length];
      await way?.(processes[index % 2] as Stores, names[index % names.length] ?? "").catch(() => {});
    };
    for (let from = 0; from < 240; from += 24) {
      // oxlint-disable-next-line no-await-in-loop -- one crowd after the other
      await Promise.all(Array.from({ length: 24 }, async (_, index) => attempt(from + index)));
    }
    const done = await pool.query<{ key: string }>(
      `SELECT key FROM ${schema}.countersign_idempotency WHERE state = 'done' ORDER BY key`,
    );
    expect(await paid()).toEqual(done.rows.map(({ key }) => key));
    expect(done.rows.length).toBeGreaterThan(0);
  });

  test("tell a deadlock of their handlers as a conflict: both pay in the end", async () => {
    const { another, pool, schema, paid, write } = await newPayouts();
    const options = "-c deadlock_timeout=20";
    await pool.query(`CREATE TABLE ${schema}.accounts (id int PRIMARY KEY, balance int)`);
    await pool.query(`INSERT INTO ${schema}.accounts VALUES (1, 0), (2, 0)`);
    const stores = another({ database: fromPg(connectPool({ options })) });
    let arrived = 0;
    let bothArrived = (): void => {};
    const both = new Promise<void>((resolve) => (bothArrived = resolve));
    const transfer = async (name: string, from: number, to: number) =>
      payAgain(
        stores,
        () => claimOf([keyOf(name)]),
        async (tx) => {
          const add = (id: number) =>
            tx.query(`UPDATE ${schema}.accounts SET balance = balance + 1 WHERE id = $1`, [id]);
          await add(from);
          arrived += 1;
          if (arrived === 2) bothArrived();
          await both;
          await add(to);
          await write(tx, name);
        },
      );
    const results = await Promise.all([transfer("a", 1, 2), transfer("b", 2, 1)]);
    expect(Math.max(...results.map(({ conflicts }) => conflicts))).toBeGreaterThan(0);
    expect(await paid()).toEqual(["a", "b"]);
    expect((await pool.query(`SELECT balance FROM ${schema}.accounts`)).rows).toEqual([
      { balance: 2 },
      { balance: 2 },
    ]);
  });
});
