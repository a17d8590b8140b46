import { expect, test } from "@jest/globals";
import { describeOnMysql } from "@countersign/test-support/servers/engines.ts";
import { testClock } from "@countersign/test-support/runs/after-test.ts";
import { fromMysql2 } from "@countersign/databases";
import { mysqlMigration } from "@countersign/store-mysql";
import { connectPool, createStores, createTables, newStores, untilBlocked } from "./connections.ts";
import { claimOf, newKey, newNonce, pay, payOne } from "./transactions.ts";

const claim = { token: "a", fingerprint: "f", leaseMs: 60_000, recovery: "rerun" } as const;
const dayMs = 86_400_000;

describeOnMysql("the stores", () => {
  test.each([
    ["assignments that do not see each other", "sql_mode = 'SIMULTANEOUS_ASSIGNMENT'"],
    ["texts that are cut", "sql_mode = ''"],
    ["no escapes", "sql_mode = 'NO_BACKSLASH_ESCAPES,ANSI_QUOTES,PIPES_AS_CONCAT'"],
    ["another character set", "NAMES latin1"],
    ["another time zone", "time_zone = '-11:00'"],
  ])("are the same on sessions with %s", async (_case, setting) => {
    const pool = connectPool();
    const table = await createTables(pool);
    const own = connectPool();
    own.on("connection", (connection) => void connection.query(`SET ${setting}`));
    const { idempotency, nonces, transactions } = createStores(own, { table });
    const key = `k'"\\ü\u{1F600}`;
    expect(await idempotency.claim(key, claim)).toMatchObject({ status: "acquired" });
    expect(await idempotency.complete(key, "a")).toBe("ok");
    expect(await idempotency.list({ state: "done", limit: 10 })).toMatchObject({ entries: [{ key }] });
    expect(await nonces.claim(newNonce("n"))).toBe("fresh");
    expect(await nonces.claim(newNonce("n"))).toBe("seen");
    expect(await payOne(transactions, newKey("paid"), undefined, { nonce: newNonce("m") })).toBe("begun");
    expect(await payOne(transactions, newKey("paid"), undefined, { nonce: newNonce("o") })).toBe("done");
    const refused = payOne(transactions, newKey("free"), () => Promise.reject(new Error("refused")));
    await expect(refused).rejects.toThrow("refused");
    expect(await payOne(transactions, newKey("free"))).toBe("begun");
    // The server's own clock, by another session: nothing is in the future, or long past.
    const other = createStores(pool, { table });
    expect(await other.idempotency.read("paid")).toMatchObject({ state: "done" });
  });

  test("throw on a connection on which somebody has left a transaction open", async () => {
    const pool = connectPool();
    const table = await createTables(pool);
    const careless = connectPool({ connectionLimit: 1 });
    const { idempotency, nonces, ready } = createStores(careless, { table });
    await ready();
    await careless.query("START TRANSACTION");
    await expect(idempotency.claim("k", claim)).rejects.toThrow(/on which a transaction is open/);
    await expect(nonces.claim(newNonce("n"))).rejects.toThrow(/on which a transaction is open/);
    await expect(idempotency.read("k")).rejects.toThrow(/on which a transaction is open/);
    await careless.query("ROLLBACK");
    expect(await idempotency.claim("k", claim)).toMatchObject({ status: "acquired" });
  });

  test.each(["START TRANSACTION", "SET autocommit = 0"])(
    "write nothing on such a connection, also where the look before came by another one: %s",
    async (careless) => {
      const { pool, table, idempotency: sound } = await newStores();
      const one = connectPool({ connectionLimit: 1 });
      const database = fromMysql2(one);
      const { idempotency } = createStores(one, {
        table,
        database: { ...database, alone: fromMysql2(pool).alone },
      });
      await idempotency.claim("k", claim);
      const before = await sound.read("k");
      await one.query(careless);
      const open = /on which a transaction is open/;
      await expect(idempotency.claim("new", claim)).rejects.toThrow(open);
      await expect(idempotency.claim("k", claim)).rejects.toThrow(open);
      await expect(idempotency.heartbeat("k", "a", 90_000)).rejects.toThrow(open);
      await expect(idempotency.complete("k", "a")).rejects.toThrow(open);
      await expect(idempotency.release("k", "a")).rejects.toThrow(open);
      await expect(idempotency.hold("k", "a", "why")).rejects.toThrow(open);
      // A row that is another one is told as ever.
      expect(await idempotency.heartbeat("k", "b", 90_000)).toBe("lost");
      await one.query("COMMIT");
      expect(await sound.read("k")).toMatchObject({ state: "running", fence: before?.fence });
      expect(await sound.read("new")).toBeUndefined();
    },
  );

  test.each(["", "-FOUND_ROWS"])(
    "answer alike on connections with the flags %p, by which a row counts that stays as it was",
    async (flag) => {
      const clock = testClock();
      const flags = flag === "" ? [] : [flag];
      const { idempotency } = await newStores({ now: clock.now }, { flags });
      const first = await idempotency.claim("k", claim);
      // Nothing but the version changes.
      expect(await idempotency.heartbeat("k", "a", 60_000)).toBe("ok");
      expect(await idempotency.claim("k", claim)).toEqual(first);
      expect(await idempotency.complete("k", "a")).toBe("ok");
      expect(await idempotency.complete("k", "a")).toBe("ok");
      expect(await idempotency.heartbeat("k", "a", 60_000)).toBe("lost");
    },
  );

  test("under READ UNCOMMITTED tell no duplicate that a key is done before that is committed", async () => {
    const { pool, table, idempotency, database } = await newStores();
    const dirty = connectPool();
    dirty.on(
      "connection",
      (connection) => void connection.query("SET SESSION TRANSACTION ISOLATION LEVEL READ UNCOMMITTED"),
    );
    const other = createStores(dirty, { table }).idempotency;
    await idempotency.claim("k", claim);
    let asked: Promise<unknown>[] = [];
    const paying = database.run(async (tx) => {
      expect(await idempotency.completeIn(tx, "k", "a")).toBe("ok");
      asked = [other.claim("k", { ...claim, token: "b" }), other.read("k"), other.complete("k", "b")];
      await untilBlocked(pool, table, 3);
      throw new Error("not paid");
    });
    await expect(paying).rejects.toThrow("not paid");
    expect(await Promise.all(asked)).toEqual([
      expect.objectContaining({ status: "in-flight" }),
      expect.objectContaining({ state: "running" }),
      "lost",
    ]);
  });

  test("give a fence above all that were pruned, also to a claim that two processes make at once", async () => {
    const { pool, table } = await newStores();
    const highest = 9e15;
    await pool.query(`UPDATE ${table}_schema SET highest_fence = ?`, [highest]);
    const both = ["a", "b"].map((token) =>
      createStores(pool, { table }).idempotency.claim("k", { ...claim, token }),
    );
    const statuses = (await Promise.all(both)).map(({ status }) => status);
    expect(new Set(statuses)).toEqual(new Set(["acquired", "in-flight"]));
    const { idempotency } = createStores(pool, { table });
    expect(await idempotency.read("k")).toMatchObject({ fence: highest + 1 });
  });

  test("prune in batches, leave locked rows for later, and keep the highest fence", async () => {
    const clock = testClock();
    const { idempotency, nonces, transactions, pool, table } = await newStores({
      now: clock.now,
      retentionMs: dayMs,
    });
    await pay(transactions, claimOf(Array.from({ length: 501 }, (_, index) => newKey(`k${index}`))));
    await pay(transactions, claimOf([newKey("locked")], { nonce: newNonce("n") }));
    const fence = (await idempotency.read("locked"))?.fence ?? Number.NaN;
    clock.advance(dayMs);
    const holder = await pool.getConnection();
    await holder.query("START TRANSACTION");
    await holder.query(`SELECT * FROM ${table}_idempotency WHERE name = 'locked' FOR UPDATE`);
    expect(await nonces.prune()).toBe(1);
    await holder.query("ROLLBACK");
    await holder.query("START TRANSACTION");
    await holder.query(`SELECT * FROM ${table}_idempotency ORDER BY digest LIMIT 1 FOR UPDATE`);
    expect(await idempotency.prune()).toBe(501);
    await holder.query("ROLLBACK");
    holder.release();
    expect(await idempotency.prune()).toBe(1);
    clock.advance(-2 * dayMs);
    const again = await idempotency.claim("locked", claim);
    expect(Reflect.get(again, "fence")).toBeGreaterThan(fence);
  });

  test("refuse the cursor of another list", async () => {
    const { idempotency } = await newStores();
    const cursor = Buffer.from("no digest").toString("base64url");
    await expect(idempotency.list({ state: "running", limit: 1, cursor })).rejects.toThrow(/cursor/);
  });

  test("say what is locked when a step has waited for too long", async () => {
    const { idempotency, database } = await newStores({ lockTimeoutMs: 500 });
    await idempotency.claim("k", claim);
    await database.run(async (tx) => {
      expect(await idempotency.completeIn(tx, "k", "a")).toBe("ok");
      await expect(idempotency.release("k", "a")).rejects.toThrow(/stayed locked by another transaction/);
      expect(await idempotency.claim("k", { ...claim, token: "b" })).toMatchObject({ status: "in-flight" });
    });
    expect(await idempotency.read("k")).toMatchObject({ state: "done" });
  });

  test("run on tables that the printed migration has made", async () => {
    const pool = connectPool({ multipleStatements: true });
    const table = await createTables(pool);
    await pool.query(`DROP TABLE ${table}_idempotency, ${table}_nonces, ${table}_schema, ${table}_answers`);
    await pool.query(mysqlMigration({ table }));
    const { idempotency } = createStores(pool, { table });
    expect(await idempotency.claim("k", claim)).toMatchObject({ status: "acquired" });
  });
});
