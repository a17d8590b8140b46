import { expect, test } from "@jest/globals";
import { describeOnMysql, mysqlEngine } from "@countersign/test-support/servers/engines.ts";
import { testClock } from "@countersign/test-support/runs/after-test.ts";
import { mysqlMigration } from "@countersign/store-sql";
import { connectPool, openStores, createTables, newStores } from "./connections.ts";
import { claimOf, newKey, newNonce, pay, payOne } from "./transactions.ts";

const claim = { token: "a", fingerprint: "f", leaseMs: 60_000, recovery: "rerun" } as const;
const dayMs = 86_400_000;

const isOnMysql = mysqlEngine === "mysql";

describeOnMysql("the stores", () => {
  test.each([
    // MySQL has no such mode.
    ...(isOnMysql
      ? []
      : [["assignments that do not see each other", "sql_mode = 'SIMULTANEOUS_ASSIGNMENT'"]]),
    ["texts that are cut", "sql_mode = ''"],
    ["no escapes", "sql_mode = 'NO_BACKSLASH_ESCAPES,ANSI_QUOTES,PIPES_AS_CONCAT'"],
    ["another character set", "NAMES latin1"],
    ["another time zone", "time_zone = '-11:00'"],
  ])("are the same on sessions with %s", async (_case, setting) => {
    const pool = connectPool();
    const table = await createTables(pool);
    const own = connectPool();
    own.on("connection", (connection) => void connection.query(`SET ${setting}`));
    const { idempotency, nonces, transactions } = openStores(own, { table });
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
    const other = openStores(pool, { table });
    expect(await other.idempotency.read("paid")).toMatchObject({ state: "done" });
  });

  test("throw on a connection on which somebody has left a transaction open", async () => {
    const pool = connectPool();
    const table = await createTables(pool);
    const careless = connectPool({ connectionLimit: 1 });
    const { idempotency, nonces, ready } = openStores(careless, { table });
    await ready();
    await careless.query("START TRANSACTION");
    await expect(idempotency.claim("k", claim)).rejects.toThrow(/on which a transaction is open/);
    await expect(nonces.claim(newNonce("n"))).rejects.toThrow(/on which a transaction is open/);
    // On MySQL no SELECT tells: what it reads decides nothing there.
    if (!isOnMysql) await expect(idempotency.read("k")).rejects.toThrow(/on which a transaction is open/);
    await careless.query("ROLLBACK");
    expect(await idempotency.claim("k", claim)).toMatchObject({ status: "acquired" });
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
    const { idempotency, database, table } = await newStores({ lockTimeoutMs: 500 });
    await idempotency.claim("k", claim);
    await database.run(async (tx) => {
      await tx.query(`SELECT 1 FROM ${table}_idempotency FOR UPDATE`);
      await expect(idempotency.release("k", "a")).rejects.toThrow(/stayed locked by another transaction/);
      expect(await idempotency.claim("k", { ...claim, token: "b" })).toMatchObject({ status: "in-flight" });
    });
    expect(await idempotency.read("k")).toMatchObject({ state: "running" });
  });

  test("run on tables that the printed migration has made", async () => {
    const pool = connectPool({ multipleStatements: true });
    const table = await createTables(pool);
    await pool.query(`DROP TABLE ${table}_idempotency, ${table}_nonces, ${table}_schema, ${table}_answers`);
    await pool.query(mysqlMigration({ table }));
    const { idempotency } = openStores(pool, { table });
    expect(await idempotency.claim("k", claim)).toMatchObject({ status: "acquired" });
  });
});
