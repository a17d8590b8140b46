import { expect, test } from "@jest/globals";
import type { PoolConnection, RowDataPacket } from "mysql2/promise";
import { describeOnMysql } from "@countersign/test-support/servers/engines.ts";
import { connectPool, openStores, idsOf, isolation, newStores, untilBlocked } from "./connections.ts";
import { claimOf, newKey, newNonce, pay, payOne } from "./transactions.ts";

async function newScene(options = {}, config = {}) {
  const scene = await newStores(options, { connectionLimit: 16, ...config });
  const insert = async (tx: PoolConnection, id: string) =>
    tx.query(`INSERT INTO ${scene.table}_payouts VALUES (?)`, [id]);
  const paid = () => idsOf(scene.pool, scene.table);
  return { ...scene, insert, paid };
}

/** Resolved from outside. */
function gate() {
  let open = (): void => {};
  const opened = new Promise<void>((resolve) => {
    open = resolve;
  });
  return { open, opened };
}

describeOnMysql("duplicates at once", () => {
  test("go on when the first of three rolls back: one pays, and a deadlock is a conflict", async () => {
    const { transactions, insert, paid, pool, table } = await newScene();
    const { open, opened } = gate();
    const started = gate();
    const first = transactions.run(async (tx) => {
      await transactions.begin(tx, claimOf([newKey("k")]));
      started.open();
      await opened;
      throw new Error("gone");
    });
    await started.opened;
    const others = ["b", "c"].map((id) => payOne(transactions, newKey("k"), (tx) => insert(tx, id)));
    await untilBlocked(pool, table, 2);
    open();
    await expect(first).rejects.toThrow("gone");
    const outcomes = await Promise.allSettled(others);
    const ends = outcomes.map((outcome) =>
      outcome.status === "fulfilled" ? outcome.value : transactions.faultOf(outcome.reason),
    );
    expect(ends).toContain("begun");
    expect(["conflict", "done"]).toContain(ends.find((end) => end !== "begun"));
    expect(await paid()).toHaveLength(1);
  });

  test("with the same keys in other orders never wait for each other in a circle", async () => {
    const { transactions } = await newScene();
    const names = Array.from({ length: 20 }, (_, index) => `k${index}`);
    const backwards = names.map((_, index) => `k${names.length - 1 - index}`);
    const rounds = Array.from({ length: 8 }, (_, round) => {
      const keys = (round % 2 === 0 ? names : backwards).map(newKey);
      return pay(transactions, claimOf(keys));
    });
    const statuses = (await Promise.all(rounds)).map(({ keys }) => new Set(keys.map(({ status }) => status)));
    expect(statuses.filter((each) => each.has("begun"))).toEqual([new Set(["begun"])]);
  });
});

describeOnMysql.each(["READ UNCOMMITTED", "READ COMMITTED", "SERIALIZABLE"])("under %s", (level) => {
  test("no duplicate is answered by what is not committed", async () => {
    const { insert, paid, pool, table } = await newScene();
    const leveled = connectPool();
    leveled.on("connection", (connection) => {
      void connection.query(`SET SESSION TRANSACTION ISOLATION LEVEL ${level}`);
    });
    const { transactions, idempotency } = openStores(leveled, { table });
    const { open, opened } = gate();
    const started = gate();
    const first = transactions.run(async (tx) => {
      const [[row]] = await tx.query<RowDataPacket[]>(`SELECT ${isolation} AS level`);
      await transactions.begin(tx, claimOf([newKey("k")]));
      started.open();
      await opened;
      throw new Error(String(row?.["level"]));
    });
    await started.opened;
    const second = payOne(transactions, newKey("k"), (tx) => insert(tx, "k"));
    // Lease mode, on the same table: a plain SELECT sees what is not committed, and that is a running key.
    const third = idempotency.read("k");
    await untilBlocked(pool, table);
    open();
    await expect(first).rejects.toThrow(level.replace(" ", "-"));
    expect(await second).toBe("begun");
    const record = await third;
    expect(["absent", "done", ...(level === "READ UNCOMMITTED" ? ["running"] : [])]).toContain(
      record?.state ?? "absent",
    );
    expect(await paid()).toEqual(["k"]);
  });
});

describeOnMysql.each(
  ["READ COMMITTED", "REPEATABLE READ", "SERIALIZABLE"].flatMap((level) =>
    [0, 1].map((autocommit): [string, number] => [level, autocommit]),
  ),
)("on sessions with %s, autocommit %i and a lax sql_mode", (level, autocommit) => {
  test("payouts are made, refused and answered, and leave the session as it was", async () => {
    const { insert, paid, pool, table } = await newScene();
    const app = connectPool({ connectionLimit: 1 });
    app.on("connection", (connection) => {
      void connection.query(`SET SESSION TRANSACTION ISOLATION LEVEL ${level}`);
      void connection.query(`SET SESSION autocommit = ${autocommit}, SESSION sql_mode = ''`);
    });
    const { transactions } = openStores(app, { table });
    const own = openStores(pool, { table });
    const settings = `SELECT ${isolation} AS level, @@autocommit AS autocommit, @@sql_mode AS mode, @@innodb_lock_wait_timeout AS waits`;
    const [[before]] = await app.query<RowDataPacket[]>(settings);
    expect(before).toMatchObject({ level: level.replace(" ", "-"), autocommit, mode: "" });
    const write = (id: string) => async (tx: PoolConnection) => insert(tx, id);
    expect(await payOne(transactions, newKey("k"), write("k"), { nonce: newNonce("a") })).toBe("begun");
    expect(await payOne(transactions, newKey("k"), write("again"), { nonce: newNonce("b") })).toBe("done");
    expect(await payOne(transactions, newKey("l"), write("l"), { nonce: newNonce("a") })).toBe("seen");
    const refuse = async (tx: PoolConnection) => {
      await insert(tx, "refused");
      throw new Error("refused");
    };
    const refused = payOne(transactions, newKey("l"), refuse, { nonce: newNonce("c") });
    await expect(refused).rejects.toThrow("refused");
    const failed = payOne(transactions, newKey("m"), (tx) => tx.query("SELECT nothing_of_the_kind"));
    await expect(failed).rejects.toThrow("nothing_of_the_kind");
    // By other sessions: it is committed.
    expect(await paid()).toEqual(["k"]);
    expect(await own.idempotency.read("k")).toMatchObject({ state: "done" });
    expect(await own.idempotency.read("l")).toBeUndefined();
    expect(await own.idempotency.read("m")).toBeUndefined();
    expect(await own.nonces.claim(newNonce("c"))).toBe("fresh");
    const [[after]] = await app.query<RowDataPacket[]>(settings);
    expect(after).toEqual(before);
  });
});
