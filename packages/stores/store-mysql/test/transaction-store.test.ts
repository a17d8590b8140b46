import { expect, test } from "@jest/globals";
import type { PoolConnection, RowDataPacket } from "mysql2/promise";
import { describeOnMysql } from "@countersign/test-support/servers/engines.ts";
import { testClock } from "@countersign/test-support/runs/after-test.ts";
import { connectPool, createStores, idsOf, newStores, untilBlocked } from "./connections.ts";
import { claimOf, newKey, newNonce, pay, payOne } from "./transactions.ts";

const lease = { token: "owner", fingerprint: "of k", leaseMs: 60_000, recovery: "hold" } as const;
const nextDay = 86_400_000;

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

describeOnMysql("a transaction", () => {
  test("commits payout, key and nonce together", async () => {
    const { transactions, idempotency, nonces, insert, paid } = await newScene();
    const [key, nonce] = [newKey("k"), newNonce("n")];
    const seen: unknown[] = [];
    const answer = await pay(transactions, claimOf([key], { nonce }), async (tx) => {
      await insert(tx, "k");
      seen.push(await idempotency.read("k"), await paid());
    });
    expect(answer).toEqual({ nonce: "fresh", keys: [{ status: "begun" }] });
    expect(seen).toEqual([undefined, []]);
    expect(await idempotency.read("k")).toMatchObject({
      state: "done",
      token: key.token,
      fingerprint: "of k",
    });
    expect(await nonces.claim(newNonce("n"))).toBe("seen");
    expect(await paid()).toEqual(["k"]);
  });

  test("answers a done key, also to the token that has paid it", async () => {
    const { transactions, insert, paid } = await newScene();
    const key = newKey("k");
    await payOne(transactions, key, (tx) => insert(tx, "first"));
    const { keys } = await pay(transactions, claimOf([newKey("k")]), (tx) => insert(tx, "second"));
    expect(keys).toEqual([{ status: "done", fingerprint: "of k" }]);
    expect(await payOne(transactions, key, (tx) => insert(tx, "again"))).toBe("done");
    expect(await paid()).toEqual(["first"]);
  });

  test("keeps the nonce of a duplicate, and touches no key after a seen one", async () => {
    const { transactions, idempotency, nonces } = await newScene();
    await payOne(transactions, newKey("k"));
    expect(await payOne(transactions, newKey("k"), undefined, { nonce: newNonce("n") })).toBe("done");
    expect(await nonces.claim(newNonce("n"))).toBe("seen");
    const replay = await pay(transactions, claimOf([newKey("other")], { nonce: newNonce("n") }));
    expect(replay).toEqual({ nonce: "seen", keys: [] });
    expect(await idempotency.read("other")).toBeUndefined();
  });

  test("undoes what a handler wrote that refuses, frees its key, and keeps the nonce", async () => {
    const { transactions, idempotency, nonces, insert, paid } = await newScene();
    const refuse = async (tx: PoolConnection) => {
      await insert(tx, "k");
      throw new Error("refused");
    };
    expect(await payOne(transactions, newKey("k"), refuse, { nonce: newNonce("n") })).toBe("begun");
    expect(await idempotency.read("k")).toBeUndefined();
    expect(await nonces.claim(newNonce("n"))).toBe("seen");
    expect(await paid()).toEqual([]);
    expect(await payOne(transactions, newKey("k"), (tx) => insert(tx, "k"))).toBe("begun");
    expect(await paid()).toEqual(["k"]);
  });

  test("leaves nothing when its work rejects", async () => {
    const { transactions, idempotency, nonces, insert, paid } = await newScene();
    const failed = transactions.run(async (tx) => {
      await transactions.begin(tx, claimOf([newKey("k")], { nonce: newNonce("n") }));
      await insert(tx, "k");
      throw new Error("gone");
    });
    await expect(failed).rejects.toThrow("gone");
    expect(await idempotency.read("k")).toBeUndefined();
    expect(await nonces.claim(newNonce("n"))).toBe("fresh");
    expect(await paid()).toEqual([]);
  });

  test("ends several keys one after the other, whatever becomes of each", async () => {
    const { transactions, idempotency, insert, paid } = await newScene();
    await payOne(transactions, newKey("c"));
    const keys = ["d", "a", "c", "b", "a "].map(newKey);
    const answer = await pay(transactions, claimOf(keys), async (tx, { key }) => {
      await insert(tx, key.replace(" ", "_"));
      if (key === "d" || key === "b") throw new Error("refused");
    });
    expect(answer.keys.map(({ status }) => status)).toEqual(["begun", "begun", "done", "begun", "begun"]);
    expect(await paid()).toEqual(["a", "a_"]);
    const records = await Promise.all(keys.map(async ({ key }) => (await idempotency.read(key))?.state));
    expect(records).toEqual([undefined, "done", "done", undefined, "done"]);
  });

  test.each([
    ["blanks at the end", "a", "a "],
    ["case", "a", "A"],
    ["accents", "e", "é"],
    ["what lax modes would cut", "k".repeat(511), "k".repeat(512)],
  ])("keeps keys apart that differ in %s", async (_case, one, other) => {
    const { transactions } = await newScene();
    expect(await payOne(transactions, newKey(one))).toBe("begun");
    expect(await payOne(transactions, newKey(other))).toBe("begun");
    expect(await payOne(transactions, newKey(one))).toBe("done");
  });
});

describeOnMysql("a transaction on a record of lease mode", () => {
  test("answers a live run and a held key", async () => {
    const { transactions, idempotency } = await newScene();
    await idempotency.claim("k", lease);
    const { keys } = await pay(transactions, claimOf([newKey("k")]));
    expect(keys).toEqual([{ status: "in-flight", fingerprint: "of k", remainingMs: expect.any(Number) }]);
    await idempotency.hold("k", "owner", "why");
    expect((await pay(transactions, claimOf([newKey("k")]))).keys).toEqual([
      { status: "held", fingerprint: "of k", reason: "why" },
    ]);
  });

  test("takes an expired run over with recovery rerun; its owner is lost, also inside of a transaction", async () => {
    const clock = testClock();
    const { transactions, idempotency, database } = await newScene({ now: clock.now });
    const run = await idempotency.claim("k", lease);
    clock.advance(60_001);
    expect(await payOne(transactions, newKey("k"))).toBe("begun");
    expect(await database.run((tx) => idempotency.completeIn(tx, "k", "owner"))).toBe("lost");
    expect(await idempotency.heartbeat("k", "owner", 1_000)).toBe("lost");
    const record = await idempotency.read("k");
    expect(record).toMatchObject({ state: "done" });
    expect(record?.fence).toBeGreaterThan(Number(Reflect.get(run, "fence")));
  });

  test("holds an expired run with recovery hold", async () => {
    const clock = testClock();
    const { transactions, idempotency } = await newScene({ now: clock.now });
    await idempotency.claim("k", lease);
    clock.advance(60_001);
    const { keys } = await pay(transactions, claimOf([newKey("k")], { recovery: "hold" }));
    expect(keys).toEqual([{ status: "held", fingerprint: "of k", reason: "lease-expired" }]);
    expect(await idempotency.read("k")).toMatchObject({ state: "held", token: "owner" });
  });

  test("takes a released key, and a done one past its retention, whose decision is forgotten", async () => {
    const clock = testClock();
    const { transactions, idempotency } = await newScene({ now: clock.now, retentionMs: nextDay });
    const held = await idempotency.claim("k", lease);
    await idempotency.hold("k", "owner", "why");
    const fence = Number(Reflect.get(held, "fence"));
    await idempotency.resolve("k", "released", { fence, by: "me" });
    expect(await payOne(transactions, newKey("k"))).toBe("begun");
    expect(await idempotency.read("k")).toMatchObject({ state: "done", decision: { by: "me" } });
    clock.advance(nextDay);
    expect(await idempotency.read("k")).toBeUndefined();
    expect(await payOne(transactions, newKey("k"))).toBe("begun");
    expect(Object.keys((await idempotency.read("k")) ?? {})).not.toContain("decision");
  });

  test("is honoured by lease mode: its key is done, and free again when it was undone", async () => {
    const { transactions, idempotency } = await newScene();
    await payOne(transactions, newKey("k"));
    expect(await idempotency.claim("k", lease)).toEqual({ status: "done", fingerprint: "of k" });
    await payOne(transactions, newKey("undone"), () => Promise.reject(new Error("refused")));
    expect(await idempotency.claim("undone", lease)).toMatchObject({ status: "acquired" });
  });
});

describeOnMysql("duplicates at once", () => {
  test("wait for the first: one is begun, all others are done", async () => {
    const { transactions, insert, paid, pool, table } = await newScene();
    const { open, opened } = gate();
    const all = Array.from({ length: 6 }, () =>
      payOne(transactions, newKey("k"), async (tx) => {
        await insert(tx, "k");
        await opened;
      }),
    );
    await untilBlocked(pool, table, 5);
    open();
    const statuses = await Promise.all(all);
    expect(statuses.filter((status) => status === "begun")).toHaveLength(1);
    expect(statuses.filter((status) => status === "done")).toHaveLength(5);
    expect(await paid()).toEqual(["k"]);
  });

  test("are locked when they wait too long, and keep no nonce", async () => {
    const { transactions, nonces } = await newScene();
    const { open, opened } = gate();
    const started = gate();
    const first = payOne(transactions, newKey("k"), async () => {
      started.open();
      await opened;
    });
    await started.opened;
    const second = payOne(transactions, newKey("k"), undefined, { waitMs: 300, nonce: newNonce("n") });
    const error = await second.catch((reason: unknown) => reason);
    open();
    expect(transactions.faultOf(error)).toBe("locked");
    expect(await first).toBe("begun");
    expect(await nonces.claim(newNonce("n"))).toBe("fresh");
  });

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

  test("of a nonce wait for the first one's end, and are seen only when it has committed", async () => {
    const { transactions, pool, table } = await newScene();
    for (const [commits, expected] of [
      [true, "seen"],
      [false, "fresh"],
    ] as const) {
      const { open, opened } = gate();
      const started = gate();
      const nonce = `n ${commits}`;
      const first = transactions.run(async (tx) => {
        await transactions.begin(tx, claimOf([newKey(nonce)], { nonce: newNonce(nonce) }));
        started.open();
        await opened;
        if (!commits) throw new Error("gone");
      });
      await started.opened;
      const second = pay(transactions, claimOf([newKey(`other ${nonce}`)], { nonce: newNonce(nonce) }));
      await untilBlocked(pool, table);
      open();
      await Promise.allSettled([first]);
      expect((await second).nonce).toBe(expected);
    }
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
    const { transactions, idempotency } = createStores(leveled, { table });
    const { open, opened } = gate();
    const started = gate();
    const first = transactions.run(async (tx) => {
      const [[row]] = await tx.query<RowDataPacket[]>("SELECT @@tx_isolation AS level");
      await transactions.begin(tx, claimOf([newKey("k")]));
      started.open();
      await opened;
      throw new Error(String(row?.["level"]));
    });
    await started.opened;
    const second = payOne(transactions, newKey("k"), (tx) => insert(tx, "k"));
    // Lease mode, on the same table: a plain SELECT would see an uncommitted `done`.
    const third = idempotency.read("k");
    await untilBlocked(pool, table);
    open();
    await expect(first).rejects.toThrow(level.replace(" ", "-"));
    expect(await second).toBe("begun");
    const record = await third;
    expect(record === undefined || record.state === "done").toBe(true);
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
    const { transactions } = createStores(app, { table });
    const own = createStores(pool, { table });
    const settings = `SELECT @@tx_isolation AS level, @@autocommit AS autocommit, @@sql_mode AS mode, @@innodb_lock_wait_timeout AS waits`;
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
    expect(await payOne(transactions, newKey("l"), refuse, { nonce: newNonce("c") })).toBe("begun");
    const failed = payOne(transactions, newKey("m"), (tx) => tx.query("SELECT nothing_of_the_kind"));
    await expect(failed).rejects.toThrow("nothing_of_the_kind");
    // By other sessions: it is committed.
    expect(await paid()).toEqual(["k"]);
    expect(await own.idempotency.read("k")).toMatchObject({ state: "done" });
    expect(await own.idempotency.read("l")).toBeUndefined();
    expect(await own.idempotency.read("m")).toBeUndefined();
    expect(await own.nonces.claim(newNonce("c"))).toBe("seen");
    const [[after]] = await app.query<RowDataPacket[]>(settings);
    expect(after).toEqual(before);
  });
});
