import { type IdempotencyClaim, idempotencyKeys } from "@countersign/idempotency";
import type { PostgresIdempotencyStore } from "../../dist/postgres/idempotency-store.js";
import type { PostgresTransaction } from "../../dist/postgres/queryable.js";
import { withPostgresTransaction } from "@countersign/store-sql/postgres";
import { beforeEach, describe, expect, test } from "@jest/globals";
import type { Pool } from "pg";
import { describeOnPostgres } from "@countersign/test-support/servers/engines.ts";
import { pause, testClock } from "@countersign/test-support/runs/after-test.ts";
import { connectClient, connectPool, createStores, newStores, untilBlocked } from "./connections.ts";
import { eventually } from "@countersign/test-support/runs/eventually.ts";
import { expectWarning } from "@countersign/test-support/runs/expect-warning.ts";

const key = "payout-7.acc-1.acc-2";

function claim(token: string): IdempotencyClaim {
  return { token, fingerprint: "f", leaseMs: 1000, recovery: "rerun" };
}

describeOnPostgres("completeIn()", () => {
  let clock: ReturnType<typeof testClock>;
  let store: PostgresIdempotencyStore;
  let pool: Pool;
  let schema: string;
  let fence: number;

  beforeEach(async () => {
    clock = testClock();
    ({ idempotency: store, pool, schema } = await newStores({ now: clock.now, lockTimeoutMs: 150 }));
    await pool.query(`CREATE TABLE ${schema}.payouts (idempotency_key text PRIMARY KEY)`);
    const claimed = await store.claim(key, claim("a"));
    if (claimed.status !== "acquired") throw new Error(claimed.status);
    ({ fence } = claimed);
  });

  const insertPayout = (tx: PostgresTransaction) =>
    tx.query(`INSERT INTO ${schema}.payouts VALUES ($1)`, [key]);
  const payouts = async () => (await pool.query(`SELECT FROM ${schema}.payouts`)).rowCount;

  /** A driver that keeps no account of transactions. */
  const withoutStatus = (tx: PostgresTransaction): PostgresTransaction => ({
    query: (text, values) => tx.query(text, values),
  });

  describe.each([
    ["a client of pg", (tx: PostgresTransaction) => tx],
    ["a driver that does not tell whether a transaction is open", withoutStatus],
  ])("on %s", (_name, as) => {
    test("works as the first statement of the transaction", async () => {
      await withPostgresTransaction(pool, async (client) => {
        expect(await store.completeIn(as(client), key, "a")).toBe("ok");
        await insertPayout(client);
      });
      expect(await store.read(key)).toMatchObject({ state: "done", token: "a" });
    });

    test("refuses a client without an open transaction and changes nothing", async () => {
      const client = await connectClient(pool);
      await expect(store.completeIn(as(client), key, "a")).rejects.toThrow(/transaction is open: BEGIN/);
      await client.query("BEGIN");
      await client.query("COMMIT");
      await expect(store.completeIn(as(client), key, "a")).rejects.toThrow(/transaction is open: BEGIN/);
      expect(await store.read(key)).toMatchObject({ state: "running" });
    });

    test("rejects in a transaction that has failed, which commits nothing", async () => {
      const client = await connectClient(pool);
      await client.query("BEGIN");
      await insertPayout(client);
      await expect(client.query("SELECT 1 / 0")).rejects.toThrow(/division/);
      await expect(store.completeIn(as(client), key, "a")).rejects.toMatchObject({ code: "25P02" });
      await client.query("COMMIT");
      expect(await store.read(key)).toMatchObject({ state: "running" });
      expect(await payouts()).toBe(0);
    });
  });

  test.each(["COMMIT", "ROLLBACK"])(
    "writes nothing behind a %s that is on its way: done would commit without the payout",
    async (end) => {
      const client = await connectClient(pool);
      await client.query("BEGIN");
      await insertPayout(client);
      const ended = client.query(end);
      await expect(store.completeIn(client, key, "a")).rejects.toThrow(/transaction is open: BEGIN/);
      await ended;
      expect(await store.read(key)).toMatchObject({ state: "running", token: "a" });
    },
  );

  test("writes nothing when the transaction rolls back, because other work in it failed, before its turn comes", async () => {
    let late: Promise<unknown> = Promise.resolve();
    const attempt = withPostgresTransaction(pool, async (client) => {
      const paid = insertPayout(client).then(() => (late = store.completeIn(client, key, "a")));
      await Promise.all([paid, Promise.reject(new Error("over the limit"))]);
    });
    await expect(attempt).rejects.toThrow("over the limit");
    await expect(late).rejects.toThrow(/the transaction has ended/);
    expect(await store.read(key)).toMatchObject({ state: "running", token: "a" });
    expect(await payouts()).toBe(0);
  });

  test.each([
    ["behind the caller's ROLLBACK", "ROLLBACK", "BEGIN"],
    ["behind the caller's COMMIT", "COMMIT", "BEGIN; SET LOCAL countersign.transaction = 'open'"],
    ["in a transaction that the next one follows in one message", "SELECT 1", "COMMIT; BEGIN"],
  ])(
    "writes nothing in somebody else's transaction that begins between its statements: %s",
    async (_case, ended, begins) => {
      const client = await connectClient(pool);
      await client.query("BEGIN");
      await client.query("SELECT 1");
      await client.query(ended);
      const sent: string[] = [];
      const overtaken: PostgresTransaction = {
        async query(text, values) {
          const result = await client.query(text, values);
          if (sent.push(text) === 1) await client.query(begins);
          return result;
        },
      };
      await expect(store.completeIn(overtaken, key, "a")).rejects.toThrow(/transaction is open: BEGIN/);
      await client.query("COMMIT");
      expect(await store.read(key)).toMatchObject({ state: "running", token: "a" });
    },
  );

  test("writes nothing in the transaction of the next one who gets the client", async () => {
    const single = connectPool({ max: 1 });
    const { idempotency } = createStores(pool, { schema, now: clock.now });
    let goOn = (): void => {};
    const held = new Promise<void>((resolve) => (goOn = resolve));
    let late: Promise<unknown> = Promise.resolve();
    const attempt = withPostgresTransaction(single, async (client) => {
      await insertPayout(client);
      late = held.then(() => idempotency.completeIn(client, key, "a"));
      late.catch(() => {});
      throw new Error("took too long");
    });
    await expect(attempt).rejects.toThrow("took too long");
    await withPostgresTransaction(single, async (client) => {
      await client.query("SELECT 1");
      goOn();
      await expect(late).rejects.toThrow(/the transaction has ended/);
    });
    expect(await store.read(key)).toMatchObject({ state: "running", token: "a" });
    expect(await payouts()).toBe(0);
  });

  test.each(["SAVEPOINT s; RELEASE s", "BEGIN", "RESET ALL", "COMMIT AND CHAIN", "ROLLBACK AND CHAIN"])(
    "commits with the transaction that is open after %s",
    async (statements) => {
      await withPostgresTransaction(pool, async (client) => {
        await client.query(statements);
        expect(await store.completeIn(client, key, "a")).toBe("ok");
        expect(await store.read(key)).toMatchObject({ state: "running" });
      });
      expect(await store.read(key)).toMatchObject({ state: "done", token: "a" });
    },
  );

  test("is one statement, as the first of withPostgresTransaction() and behind others", async () => {
    await store.claim("second", claim("a"));
    const sent: string[] = [];
    await withPostgresTransaction(pool, async (client) => {
      const counted: PostgresTransaction = {
        query(text, values) {
          sent.push(text);
          return client.query(text, values);
        },
      };
      expect(await store.completeIn(counted, key, "a")).toBe("ok");
      expect(sent).toHaveLength(1);
      expect(await store.completeIn(counted, "second", "a")).toBe("ok");
    });
    expect(sent).toHaveLength(2);
  });

  test.each(["COMMIT", "ROLLBACK"])(
    "writes nothing when the work of withPostgresTransaction() has sent a %s of its own",
    async (end) => {
      await withPostgresTransaction(pool, async (client) => {
        const ended = client.query(end);
        await expect(store.completeIn(client, key, "a")).rejects.toThrow(/transaction is open: BEGIN/);
        await ended;
      });
      expect(await store.read(key)).toMatchObject({ state: "running", token: "a" });
    },
  );

  test("refuses the pool in place of the client that began the transaction", async () => {
    const client = await connectClient(pool);
    await client.query("BEGIN");
    await expect(store.completeIn(pool, key, "a")).rejects.toThrow(TypeError);
    await expect(store.completeIn(pool, key, "a")).rejects.toThrow(
      /needs the client .+; got a pool\. See http/,
    );
    await client.query("COMMIT");
    expect(await store.read(key)).toMatchObject({ state: "running" });
  });

  test.each<[string, () => unknown, RegExp]>([
    ["nothing", () => undefined, /got undefined\. See http/],
    ["text", () => "tx", /got a string\. See http/],
    ["a promise", () => Promise.resolve(), /has no function query\. See http/],
    [
      "an ORM's handle",
      () => ({ $queryRaw: () => [], query: { payouts: {} } }),
      /no function query\. See http/,
    ],
    ["an ORM's runner of rows", () => ({ query: async () => [] }), /need a client of pg/],
    ["the pool", () => pool, /got a pool\. See http/],
  ])(
    "refuses %s in place of a client, and leaves the key to its handler's answer",
    async (_case, given, message) => {
      const tx = given();
      const keys = idempotencyKeys({ factory: "test", store, recovery: "rerun" });
      const own = async (token: string) => {
        const owned = await keys.acquire({ key: "other", token, fingerprint: "f" });
        if (owned.status !== "acquired") throw new Error(owned.status);
        const completed = owned.completeIn(tx);
        await expect(completed).rejects.toThrow(TypeError);
        await expect(completed).rejects.toThrow(message);
        return owned;
      };
      await (await own("b")).release();
      expect(await store.read("other")).toBeUndefined();
      // A handler that kept the error to itself, and says that it has paid.
      expectWarning(/^\[commit-not-confirmed\] CountersignWarning: test: key "other" is held/);
      expect(await (await own("c")).complete()).toMatchObject({ status: 503 });
      expect(await store.read("other")).toMatchObject({ state: "held" });
    },
  );

  test("is undone by a savepoint, although the payout is committed: the record says run, and another may take the key", async () => {
    await withPostgresTransaction(pool, async (client) => {
      await insertPayout(client);
      await client.query("SAVEPOINT receipt");
      expect(await store.completeIn(client, key, "a")).toBe("ok");
      await client.query("ROLLBACK TO SAVEPOINT receipt");
    });
    expect(await payouts()).toBe(1);
    expect(await store.read(key)).toMatchObject({ state: "running", token: "a", fence });
    clock.advance(1000);
    expect((await store.claim(key, claim("b"))).status).toBe("acquired");
  });

  test("may come again behind the savepoint that has undone it", async () => {
    await withPostgresTransaction(pool, async (client) => {
      await client.query("SAVEPOINT receipt");
      await store.completeIn(client, key, "a");
      await client.query("ROLLBACK TO SAVEPOINT receipt");
      await insertPayout(client);
      expect(await store.completeIn(client, key, "a")).toBe("ok");
    });
    expect(await store.read(key)).toMatchObject({ state: "done", token: "a" });
  });

  test.each(["READ COMMITTED", "REPEATABLE READ", "SERIALIZABLE"])(
    "works in a transaction that is %s",
    async (level) => {
      await withPostgresTransaction(pool, async (client) => {
        await client.query(`SET TRANSACTION ISOLATION LEVEL ${level}`);
        await insertPayout(client);
        expect(await store.completeIn(client, key, "a")).toBe("ok");
      });
      expect(await store.read(key)).toMatchObject({ state: "done" });
    },
  );

  test.each(["REPEATABLE READ", "SERIALIZABLE"])(
    "rejects with the server's own error when the key changed since the snapshot of a %s transaction",
    async (level) => {
      const attempt = withPostgresTransaction(pool, async (client) => {
        await client.query(`SET TRANSACTION ISOLATION LEVEL ${level}`);
        await insertPayout(client);
        await store.heartbeat(key, "a", 5000);
        await store.completeIn(client, key, "a");
      });
      await expect(attempt).rejects.toMatchObject({ code: "40001" });
      expect(await store.read(key)).toMatchObject({ state: "running" });
      expect(await payouts()).toBe(0);
    },
  );

  test.each<[string, string, (patient: PostgresIdempotencyStore) => Promise<unknown>, unknown]>([
    ["a completion", "until_at = until_at + interval '1 s'", (patient) => patient.complete(key, "a"), "ok"],
    ["a release", "until_at = until_at + interval '1 s'", (patient) => patient.release(key, "a"), "ok"],
    ["a hold", "until_at = until_at + interval '1 s'", (patient) => patient.hold(key, "a", "why"), "ok"],
    ["a completion", "token = 'b', fence = fence + 1", (patient) => patient.complete(key, "a"), "lost"],
    ["a release", "state = 'held'", (patient) => patient.release(key, "a"), "lost"],
    ["a decision", "state = 'held'", (patient) => patient.resolve(key, "done", { fence }), "ok"],
    [
      "a decision",
      "fence = fence + 1, until_at = until_at - interval '1 day'",
      (patient) => patient.resolve(key, "done", { fence }),
      "not-held",
    ],
  ])("lets %s that waited look again at the row: after %s", async (_case, change, step, answer) => {
    const { idempotency: patient } = createStores(pool, { schema, now: clock.now, lockTimeoutMs: 20_000 });
    if (change.includes("held") || answer === "not-held") clock.advance(1000);
    const client = await connectClient(pool);
    await client.query("BEGIN");
    await client.query(`UPDATE ${schema}.countersign_idempotency SET version = version + 1, ${change}`);
    const waiting = step(patient);
    await untilBlocked(pool, schema);
    await client.query("COMMIT");
    expect(await waiting).toBe(answer);
  });

  test("lets a claim that waited for an expired run leave it held, when it was held meanwhile", async () => {
    const { idempotency: patient } = createStores(pool, { schema, now: clock.now, lockTimeoutMs: 20_000 });
    clock.advance(1000);
    const client = await connectClient(pool);
    await client.query("BEGIN");
    await client.query(
      `UPDATE ${schema}.countersign_idempotency SET version = version + 1, state = 'held', reason = 'why'`,
    );
    const waiting = patient.claim(key, claim("b"));
    await untilBlocked(pool, schema);
    await client.query("COMMIT");
    expect(await waiting).toEqual({ status: "held", fingerprint: "f", reason: "why" });
    expect(await store.read(key)).toMatchObject({ state: "held", token: "a" });
  });

  test("gives a claim that waited for another takeover a fence above that one's", async () => {
    const { idempotency: patient } = createStores(pool, { schema, now: clock.now, lockTimeoutMs: 20_000 });
    clock.advance(1000);
    const client = await connectClient(pool);
    await client.query("BEGIN");
    await client.query(`SELECT FROM ${schema}.countersign_idempotency FOR UPDATE`);
    const waiting = patient.claim(key, claim("b"));
    await untilBlocked(pool, schema);
    const ahead = clock.now() * 1000 + 7;
    await client.query(
      `UPDATE ${schema}.countersign_idempotency SET version = version + 1, state = 'free', fence = $1`,
      [ahead],
    );
    await client.query("COMMIT");
    expect(await waiting).toEqual({ status: "acquired", fence: ahead + 1 });
  });

  test("fails the owner's heartbeat at once while its own transaction has the row, and lets it go on after a rollback", async () => {
    const { idempotency: patient } = createStores(pool, { schema, now: clock.now, lockTimeoutMs: 20_000 });
    const client = await connectClient(pool);
    await client.query("BEGIN");
    await store.completeIn(client, key, "a");
    const begin = performance.now();
    await expect(patient.heartbeat(key, "a", 5000)).rejects.toThrow(/stayed locked/);
    expect(performance.now() - begin).toBeLessThan(15_000);
    await client.query("ROLLBACK");
    expect(await patient.heartbeat(key, "a", 5000)).toBe("ok");
  });

  test("leaves the patience of the caller's transaction as it was, and its commit durable", async () => {
    const client = await connectClient(pool);
    await client.query("SET lock_timeout = '7s'");
    await client.query("SET synchronous_commit = off");
    await client.query("BEGIN");
    await store.completeIn(client, key, "a");
    const show = async (setting: string) => (await client.query(`SHOW ${setting}`)).rows[0];
    expect(await show("lock_timeout")).toEqual({ lock_timeout: "7s" });
    expect(await show("synchronous_commit")).toEqual({ synchronous_commit: "on" });
    await client.query("COMMIT");
    expect(await show("synchronous_commit")).toEqual({ synchronous_commit: "off" });
  });

  test("leaves a commit that waits for more than its own disk as it is", async () => {
    const client = await connectClient(pool);
    await client.query("BEGIN; SET LOCAL synchronous_commit = remote_apply");
    await store.completeIn(client, key, "a");
    const { rows } = await client.query("SHOW synchronous_commit");
    expect(rows).toEqual([{ synchronous_commit: "remote_apply" }]);
    await client.query("ROLLBACK");
  });

  test("remembers done from the step on, not from the start of a long transaction", async () => {
    const { idempotency } = createStores(pool, { schema });
    await withPostgresTransaction(pool, async (client) => {
      await client.query("CREATE TEMP TABLE before ON COMMIT DROP AS SELECT clock_timestamp() AS at");
      expect(await idempotency.completeIn(client, key, "a")).toBe("ok");
      const { rows } = await client.query(
        `SELECT until_at - interval '1 hour' * 24 * 90 >= at AS whole FROM before, ${schema}.countersign_idempotency`,
      );
      expect(rows).toEqual([{ whole: true }]);
    });
  });

  test("works on a pool of one connection, whose other steps wait for it", async () => {
    const single = connectPool({ max: 1 });
    const { idempotency } = createStores(single, { schema, now: clock.now });
    await idempotency.claim("single", claim("a"));
    let beat: Promise<string> | undefined;
    await withPostgresTransaction(single, async (client) => {
      beat = idempotency.heartbeat("single", "a", 1000);
      const first = await Promise.race([beat, pause(200).then(() => "waits")]);
      expect(first).toBe("waits");
      expect(await idempotency.completeIn(client, "single", "a")).toBe("ok");
    });
    expect(await beat).toBe("lost");
    expect(await idempotency.read("single")).toMatchObject({ state: "done" });
  });

  test("makes the guard answer in time when the only connection of the pool is in a transaction", async () => {
    // Its connection comes back when the guard has answered, not before.
    const single = connectPool({ max: 1 });
    const { idempotency } = createStores(single, { schema, now: clock.now });
    const keys = idempotencyKeys({
      factory: "test",
      store: idempotency,
      storeTimeoutMs: 150,
      recovery: "rerun",
      onSettled: () => {},
    });
    await withPostgresTransaction(single, async () => {
      const acquired = Promise.resolve(keys.acquire({ key: "other", token: "t", fingerprint: "f" }));
      await expect(acquired).rejects.toMatchObject({ status: 503, code: "idempotency-store-unavailable" });
    });
    await eventually(async () => (await idempotency.read("other")) === undefined);
  });
});
