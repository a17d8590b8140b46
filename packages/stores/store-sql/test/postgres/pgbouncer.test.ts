import { fromPg } from "@countersign/store-sql/pg";
import { createStores, migrate } from "@countersign/store-sql";
import { afterAll, describe, expect, test } from "@jest/globals";
import { isolatedName, postgresUrl } from "@countersign/test-support/servers/engines.ts";
import { startPgBouncer } from "@countersign/test-support/servers/pgbouncer.ts";
import { afterTest } from "@countersign/test-support/runs/after-test.ts";
import { connectPool, openStores, dropAfterTest, newStores } from "./connections.ts";
import { claimOf, payIn } from "./payouts.ts";

const bouncer = postgresUrl === undefined ? undefined : await startPgBouncer(postgresUrl, { poolSize: 5 });
const behindPgBouncer = bouncer === undefined ? describe.skip : describe;
const claim = { token: "a", fingerprint: "f", leaseMs: 60_000, recovery: "rerun" } as const;

afterAll(() => bouncer?.close());

behindPgBouncer("the stores behind PgBouncer in transaction mode", () => {
  const config = { connectionString: bouncer?.url };

  test("keep 50 parallel payments over five server connections apart, each with its payout", async () => {
    const { nonces, pool, schema } = await newStores({}, { ...config, max: 20 });
    const { transactions, close } = createStores({ database: fromPg(pool), schema });
    afterTest(close);
    await pool.query(`CREATE TABLE ${schema}.payouts (id text PRIMARY KEY)`);
    const pay = async (index: number): Promise<string | undefined> => {
      const key = `k${index % 25}`;
      const token = `t${index}`;
      expect(await nonces.claim({ scope: "s", nonce: token, token, retainMs: 60_000 })).toBe("fresh");
      const own = { key, token, fingerprint: "f" };
      const { keys } = await payIn(transactions, claimOf([own]), (tx) =>
        tx.query(`INSERT INTO ${schema}.payouts VALUES ($1)`, [key]),
      );
      return keys[0]?.status;
    };
    const results = await Promise.all(Array.from({ length: 50 }, (_, index) => pay(index)));
    expect(results.filter((result) => result === "begun")).toHaveLength(25);
    expect((await pool.query(`SELECT FROM ${schema}.payouts`)).rowCount).toBe(25);
  });

  test("leave nothing on a server connection for the next client to find", async () => {
    const { idempotency, nonces, pool } = await newStores({}, { ...config, max: 20 });
    await Promise.all(
      Array.from({ length: 20 }, async (_, index) => {
        await idempotency.claim(`k${index}`, claim);
        await nonces.claim({ scope: "s", nonce: `n${index}`, token: "a", retainMs: 60_000 });
        await idempotency.complete(`k${index}`, "a");
      }),
    );
    const left = `SELECT (SELECT count(*) FROM pg_prepared_statements)::int AS statements,
      (SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND pid = pg_backend_pid())::int AS locks,
      current_setting('lock_timeout') AS lock_timeout`;
    for (let index = 0; index < 10; index++) {
      expect((await pool.query(left)).rows).toEqual([{ statements: 0, locks: 0, lock_timeout: "0" }]);
    }
  });

  test("with the option prepare work, or say why they do not: it depends on the version of PgBouncer", async () => {
    // Of its own: named statements stay on its server connections.
    const own = await startPgBouncer(postgresUrl ?? "", { poolSize: 5 });
    afterTest(() => own?.close());
    const { idempotency } = await newStores({ prepare: true }, { connectionString: own?.url, max: 20 });
    const claims = Array.from({ length: 100 }, (_, index) => idempotency.claim(`k${index}`, claim));
    for (const claimed of await Promise.allSettled(claims)) {
      if (claimed.status === "fulfilled") expect(claimed.value.status).toBe("acquired");
      else expect(String(claimed.reason)).toContain("leave out the option prepare");
    }
  });

  test("migrate at once", async () => {
    const pool = connectPool({ ...config, max: 10 });
    const schema = isolatedName("pg");
    dropAfterTest(pool, schema);
    await Promise.all(Array.from({ length: 10 }, () => migrate(pool, { schema })));
    await openStores(pool, { schema }).ready();
  });
});
