import { expect, test } from "@jest/globals";
import type { Pool, PoolConnection, RowDataPacket } from "mysql2/promise";
import { fromMysql2 } from "@countersign/store-sql/mysql2";
import type { Database } from "@countersign/idempotency";
import type { Row } from "@countersign/idempotency/store";
import { createStores } from "@countersign/store-sql";
import { afterTest, pause } from "@countersign/test-support/runs/after-test.ts";
import { describeOnMysql, mysqlEngine } from "@countersign/test-support/servers/engines.ts";
import {
  connectPool,
  openStores,
  createTables,
  idsOf,
  loseDeadlock,
  newStores,
  untilBlocked,
  numbers,
} from "./connections.ts";
import { claimOf, newKey, newNonce, pastGate, pay, payOne, type Transactions } from "./transactions.ts";

const held = { state: "held", reason: "transaction-broken" };
const broken = expect.objectContaining({ code: "transaction-broken", status: 500 });

/** A handler that sends a text which its `tx` does not take. */
const past = (text: string) => (tx: PoolConnection, transactions: Transactions) =>
  pastGate(transactions, tx, text);

const isOnMysql = mysqlEngine === "mysql";
// MySQL has no variable that tells of a transaction: without autocommit one is open.
const isOpen = isOnMysql ? "@@autocommit = 0" : "@@in_transaction";
const idleBound = isOnMysql ? "wait_timeout" : "idle_write_transaction_timeout";

async function sessionOf(connection: Pick<Pool, "query">) {
  const [[row]] = await connection.query<RowDataPacket[]>(
    `SELECT @@autocommit AS autocommit, ${isOpen} AS is_open, @@innodb_lock_wait_timeout AS waits,
  @@lock_wait_timeout AS metadata, @@${idleBound} AS idle`,
  );
  return { ...row };
}

const untouched = { autocommit: 1, is_open: 0, waits: 7, metadata: 8, idle: 9 };

/** On one connection, whose session is the app's. */
async function newSession() {
  const scene = await newStores({}, { connectionLimit: 1 });
  await scene.pool.query(
    `SET SESSION innodb_lock_wait_timeout = 7, SESSION lock_wait_timeout = 8, SESSION ${idleBound} = 9`,
  );
  return scene;
}

/** A table with the rows 1 to 300. */
async function newRival(pool: Pool, table: string): Promise<string> {
  const rival = `${table}_rival`;
  afterTest(() => connectPool().query(`DROP TABLE IF EXISTS ${rival}`));
  await pool.query(`CREATE TABLE ${rival} (id INT PRIMARY KEY, value INT) ENGINE = InnoDB`);
  await pool.query(`INSERT INTO ${rival} SELECT seq, 0 FROM ${numbers}`);
  return rival;
}

describeOnMysql("the session of a transaction", () => {
  test("has its own bounds, and is as it was after the commit", async () => {
    const { transactions, pool } = await newSession();
    const inside: unknown[] = [];
    await payOne(transactions, newKey("k"), async (tx) => inside.push(await sessionOf(tx)), {
      waitMs: 2_500,
      idleTimeoutMs: 30_000,
    });
    expect(inside).toEqual([{ autocommit: 0, is_open: 1, waits: 3, metadata: 3, idle: 30 }]);
    expect(await sessionOf(pool)).toEqual(untouched);
  });

  test.each<[string, (tx: PoolConnection, transactions: Transactions) => Promise<unknown>]>([
    ["fails", () => Promise.reject(new Error("refused"))],
    ["fails on the server", (tx) => tx.query("SELECT nothing_of_the_kind")],
    ["changed a table", past("CREATE TABLE IF NOT EXISTS cs_session_ddl (id INT)")],
    ["ended it by COMMIT", past("COMMIT")],
    ["ended it by ROLLBACK", past("ROLLBACK")],
  ])("is as it was when the handler %s", async (_case, handler) => {
    const { transactions, pool } = await newSession();
    afterTest(() => connectPool().query("DROP TABLE IF EXISTS cs_session_ddl"));
    await payOne(transactions, newKey("k"), (tx) => handler(tx, transactions)).catch(() => {});
    expect(await sessionOf(pool)).toEqual(untouched);
  });

  test("is as it was after a duplicate, and after a seen nonce", async () => {
    const { transactions, pool } = await newSession();
    for (let round = 0; round < 3; round += 1) {
      await payOne(transactions, newKey("k"), undefined, { nonce: newNonce(`n${Math.min(round, 1)}`) });
      expect(await sessionOf(pool)).toEqual(untouched);
    }
  });

  test("is as it was when its first message stops in the middle, at a wait that is over or a deadlock", async () => {
    const { transactions, nonces, pool, table } = await newSession();
    const others = connectPool();
    const rows = await newRival(others, table);
    await payOne(transactions, newKey("k"));
    const rival = await others.getConnection();
    afterTest(() => rival.destroy());
    for (const [isDeadlock, fault] of [
      [false, "locked"],
      [true, "conflict"],
    ] as const) {
      await rival.query("START TRANSACTION");
      // The rival has written more: the server rolls the other one back.
      await rival.query(`UPDATE ${rows} SET value = value + 1`);
      await rival.query(`SELECT * FROM ${table}_idempotency FOR UPDATE`);
      const waitMs = isDeadlock ? 20_000 : 300;
      const failed = payOne(transactions, newKey("k"), undefined, { nonce: newNonce("n"), waitMs });
      if (isDeadlock) {
        await untilBlocked(others, table);
        await rival.query(`SELECT * FROM ${table}_nonces FOR UPDATE`);
      }
      const error = await failed.catch((reason: unknown) => reason);
      await rival.query("ROLLBACK");
      expect(transactions.faultOf(error)).toBe(fault);
      expect(await sessionOf(pool)).toEqual(untouched);
    }
    expect(await nonces.claim(newNonce("n"))).toBe("fresh");
  });

  test("ends with its line, and the key stays free", async () => {
    const { transactions, idempotency, pool, table } = await newStores({}, { connectionLimit: 2 });
    const failed = payOne(transactions, newKey("k"), async (tx) => {
      await tx.query(`INSERT INTO ${table}_payouts VALUES ('k')`);
      await pool.query(`KILL ${tx.threadId}`);
      await tx.query("SELECT 1");
    });
    const error = await failed.catch((reason: unknown) => reason);
    expect(transactions.faultOf(error)).toBe("unavailable");
    expect(await idempotency.read("k")).toBeUndefined();
    expect(await idsOf(pool, table)).toEqual([]);
    expect(await sessionOf(pool)).toMatchObject({ autocommit: 1, is_open: 0 });
  });

  test("is ended by the server when it stands idle for too long", async () => {
    const { transactions, idempotency } = await newStores();
    const failed = payOne(
      transactions,
      newKey("k"),
      async (tx) => {
        await pause(2_500);
        await tx.query("SELECT 1");
      },
      { idleTimeoutMs: 1_000 },
    );
    const error = await failed.catch((reason: unknown) => reason);
    expect(transactions.faultOf(error)).toBe("unavailable");
    expect(await payOne(transactions, newKey("k"))).toBe("begun");
    expect(await idempotency.read("k")).toMatchObject({ state: "done" });
  });
});

/** Stores whose statement that holds a broken transaction's keys goes by `hold`. */
/** As a script has it. */
const holdReason = Buffer.from("transaction-broken");
const inHex = holdReason.toString("hex");

async function storesThatHold(hold: (send: () => Promise<readonly Row[]>) => Promise<readonly Row[]>) {
  const { pool, table } = await newStores();
  const whole = fromMysql2(pool);
  const script = async (tx: PoolConnection, text: string) => {
    const send = async () => (await whole.script?.(tx, text)) ?? [];
    return text.includes(inHex) ? hold(send) : send();
  };
  // Where there are no scripts.
  const change: Database<PoolConnection>["change"] = async (text, values, within) => {
    const send = async () => (await whole.change?.(text, values, within)) ?? Number.NaN;
    const isHold = values.some(
      (value) => value instanceof Uint8Array && Buffer.from(value).equals(holdReason),
    );
    if (!isHold) return send();
    let changed = Number.NaN;
    await hold(async () => {
      changed = await send();
      return [];
    });
    return changed;
  };
  return openStores(pool, { table, database: { ...whole, script, change } });
}

describeOnMysql("a handler that", () => {
  test("swallows a deadlock pays nothing: what it writes afterwards does not commit alone; its key is held", async () => {
    const { transactions, idempotency, nonces, pool, table } = await newStores();
    const rival = await newRival(pool, table);
    const nonce = newNonce("n");
    const paid = payOne(
      transactions,
      newKey("k"),
      async (tx) => {
        await loseDeadlock(tx, pool, rival);
        await tx.query(`INSERT INTO ${table}_payouts VALUES ('paid')`);
      },
      { nonce },
    );
    await expect(paid).rejects.toEqual(broken);
    await expect(paid).rejects.toThrow(/swallowed a deadlock/);
    expect(await idsOf(pool, table)).toEqual([]);
    expect(await idempotency.read("k")).toMatchObject(held);
    expect(await nonces.claim(newNonce("n"))).toBe("fresh");
  });

  test("lets a deadlock through is a conflict, and the whole may run again", async () => {
    const { transactions, pool, table } = await newStores();
    const rival = await newRival(pool, table);
    const key = newKey("k");
    const failed = payOne(transactions, key, async (tx) => {
      await loseDeadlock(tx, pool, rival);
      throw Object.assign(new Error("wrapped by an ORM"), { cause: { errno: 1213, sqlState: "40001" } });
    });
    expect(transactions.faultOf(await failed.catch((reason: unknown) => reason))).toBe("conflict");
    expect(await payOne(transactions, key)).toBe("begun");
  });

  test.each([
    ["changes a table", (table: string) => `ALTER TABLE ${table}_payouts ADD COLUMN more INT`],
    ["commits by itself", () => "COMMIT"],
  ])("%s leaves a held key: what was committed has to be looked at", async (_case, statementOf) => {
    const { transactions, idempotency, pool, table } = await newStores();
    const paid = payOne(transactions, newKey("k"), async (tx) => {
      await tx.query(`INSERT INTO ${table}_payouts (id) VALUES ('half')`);
      await pastGate(transactions, tx, statementOf(table));
    });
    await expect(paid).rejects.toEqual(broken);
    expect(await idsOf(pool, table)).toEqual(["half"]);
    expect(await idempotency.read("k")).toMatchObject(held);
  });

  test.each(["MyISAM", ...(isOnMysql ? [] : ["Aria"]), "MEMORY"])(
    "is refused after it wrote in a table of %s leaves a held key: ROLLBACK leaves the row",
    async (engine) => {
      const { transactions, idempotency, pool, table } = await newStores();
      await pool.query(`ALTER TABLE ${table}_payouts MODIFY id VARCHAR(60), ENGINE = ${engine}`);
      const key = newKey("k");
      const reason = new Error("refused");
      const refused = payOne(transactions, key, async (tx) => {
        await tx.query(`INSERT INTO ${table}_payouts VALUES ('left')`);
        throw reason;
      });
      await expect(refused).rejects.toMatchObject({ code: "transaction-held", cause: reason });
      await expect(refused).rejects.toThrow(/ENGINE = InnoDB/);
      expect(await idempotency.read("k")).toMatchObject(held);
      // By which the caller is told of a held key, and not of a refusal for good.
      expect(await transactions.hold([key], held.reason)).toEqual(new Set(["k"]));
      expect(await idsOf(pool, table)).toEqual(["left"]);
    },
  );

  test("rolls back by itself leaves a held key, and nothing of what it writes afterwards", async () => {
    const { transactions, idempotency, pool, table } = await newStores();
    const paid = payOne(transactions, newKey("k"), async (tx) => {
      await pastGate(transactions, tx, "ROLLBACK");
      await tx.query(`INSERT INTO ${table}_payouts VALUES ('alone')`);
    });
    await expect(paid).rejects.toEqual(broken);
    expect(await idsOf(pool, table)).toEqual([]);
    expect(await idempotency.read("k")).toMatchObject(held);
  });

  type Send = (text: string) => Promise<void>;
  const [rollsBack, deadlocks] = [
    (send: Send) => send("ROLLBACK"),
    (_send: Send, tx: PoolConnection, pool: Pool, rival: string) => loseDeadlock(tx, pool, rival),
  ];
  const [commits, changesTable] = [
    (send: Send) => send("COMMIT"),
    (send: Send, table: string) => send(`ALTER TABLE ${table}_payouts ADD COLUMN more INT`),
  ];

  test.each([
    ["rolls back by itself", "commits", rollsBack, commits],
    ["rolls back by itself", "changes a table", rollsBack, changesTable],
    ["swallows a deadlock", "commits", deadlocks, commits],
    ["swallows a deadlock", "changes a table", deadlocks, changesTable],
  ])("%s, pays and %s by itself leaves a held key: no retry pays again", async (_end, _how, end, then) => {
    const { transactions, idempotency, pool, table } = await newStores();
    const rival = await newRival(pool, table);
    for (const returns of [true, false]) {
      const id = `alone ${returns}`;
      const pays = () =>
        payOne(transactions, newKey(id), async (tx) => {
          const send: Send = (text) => pastGate(transactions, tx, text);
          await end(send, tx, pool, rival);
          await send("START TRANSACTION");
          await tx.query(`INSERT INTO ${table}_payouts (id) VALUES (?)`, [id]);
          await then(send, table);
          if (!returns) throw new Error("refused");
        });
      await expect(pays()).rejects.toEqual(broken);
      expect(await idempotency.read(id)).toMatchObject(held);
      expect(await pays()).toBe("held");
      // Where there is one.
      await pool.query(`ALTER TABLE ${table}_payouts DROP COLUMN more`).catch(() => {});
    }
    // Behind a deadlock the session may write still; behind its end the server refuses it.
    const paid = end === deadlocks ? ["alone false", "alone true"] : [];
    expect(await idsOf(pool, table)).toEqual(paid);
  });

  test.each([
    ["paid", "done", { state: "done", token: "theirs" }],
    ["begun", "running", { ...held, token: "theirs" }],
    ["had held", "held", { state: "held", reason: "in doubt", token: "theirs" }],
  ])(
    "rolls back by itself leaves the key to another process that has %s it meanwhile",
    async (_case, state, record) => {
      const { transactions, idempotency } = await newStores();
      const paid = payOne(transactions, newKey("k"), async (tx) => {
        await pastGate(transactions, tx, "ROLLBACK");
        await idempotency.claim("k", {
          token: "theirs",
          fingerprint: "f",
          leaseMs: 60_000,
          recovery: "hold",
        });
        if (state === "done") await idempotency.complete("k", "theirs");
        if (state === "held") await idempotency.hold("k", "theirs", "in doubt");
      });
      await expect(paid).rejects.toEqual(broken);
      expect(await idempotency.read("k")).toMatchObject(record);
      if (state === "running") expect(await idempotency.complete("k", "theirs")).toBe("ok");
    },
  );

  test("ends it gets its key held after a deadlock over it", async () => {
    const failures = [1213, 1020];
    const { transactions, idempotency } = await storesThatHold((send) => {
      const errno = failures.shift();
      return errno === undefined ? send() : Promise.reject(Object.assign(new Error("deadlock"), { errno }));
    });
    const paid = payOne(transactions, newKey("k"), (tx) => pastGate(transactions, tx, "ROLLBACK"));
    await expect(paid).rejects.toEqual(broken);
    expect(await idempotency.read("k")).toMatchObject(held);
    expect(failures).toEqual([]);
  });

  test("ends it is told with both errors when its key cannot be held", async () => {
    const failure = Object.assign(new Error("lock wait"), { errno: 1205 });
    const { transactions } = await storesThatHold(() => Promise.reject(failure));
    const error: unknown = await payOne(transactions, newKey("k"), (tx) =>
      pastGate(transactions, tx, "ROLLBACK"),
    ).catch((reason: unknown) => reason);
    expect(error).toMatchObject({ code: "transaction-broken", cause: expect.any(AggregateError) });
    // The lock of another one is no reason to run the handler again.
    expect(transactions.faultOf(error)).toBeUndefined();
  });

  test("goes on after the transaction's end writes nothing", async () => {
    const { transactions, database, pool, table } = await newStores();
    const kept: PoolConnection[] = [];
    await payOne(transactions, newKey("k"), (tx) => Promise.resolve(kept.push(tx)));
    const [late] = kept;
    if (late === undefined) throw new Error("no transaction");
    await expect(database.query(late, `INSERT INTO ${table}_payouts VALUES ('late')`, [])).rejects.toThrow(
      /has ended/,
    );
    await expect(transactions.begin(late, claimOf([newKey("late")]))).rejects.toThrow(TypeError);
    expect(await idsOf(pool, table)).toEqual([]);
  });
});

describeOnMysql("the first transaction", () => {
  const query: Database<PoolConnection>["query"] = async (tx, text, values) => {
    const [rows] = await tx.query(text, [...values]);
    return Array.isArray(rows) ? (rows as RowDataPacket[]) : [];
  };

  async function storesWith(
    change: (database: Database<PoolConnection>, pool: Pool) => Partial<Database<PoolConnection>>,
  ) {
    const pool = connectPool();
    const table = await createTables(pool);
    const whole = fromMysql2(pool);
    const database = { ...whole, ...change(whole, pool) };
    const stores = createStores({ database, table, pruneIntervalMs: 0 });
    afterTest(() => stores.close());
    return stores;
  }

  test("refuses a library that opens none", async () => {
    const { transactions, idempotency } = await storesWith((_, pool) => ({
      query,
      async run(work) {
        const connection = await pool.getConnection();
        try {
          return await work(connection);
        } finally {
          connection.release();
        }
      },
    }));
    const first = payOne(transactions, newKey("k"));
    await expect(first).rejects.toBeInstanceOf(TypeError);
    await expect(first).rejects.toThrow(/mysql2 has opened no transaction/);
    expect(await idempotency.read("k")).toBeUndefined();
  });

  test("refuses a library whose transactions may not write", async () => {
    const { transactions } = await storesWith((_, pool) => ({
      query,
      async run(work) {
        const connection = await pool.getConnection();
        try {
          await connection.query("START TRANSACTION READ ONLY");
          return await work(connection);
        } finally {
          await connection.query("ROLLBACK");
          connection.release();
        }
      },
    }));
    const first = payOne(transactions, newKey("k"));
    await expect(first).rejects.toThrow(/read-only; connect to the primary server/);
    await expect(first).rejects.not.toBeInstanceOf(TypeError);
  });

  test("is proved once, and again after a failure", async () => {
    let begun = 0;
    const { transactions } = await storesWith((whole) => ({
      run(work) {
        begun += 1;
        return begun === 1 ? Promise.reject(new Error("down")) : whole.run(work);
      },
    }));
    await expect(payOne(transactions, newKey("k"))).rejects.toThrow("down");
    await Promise.all([payOne(transactions, newKey("a")), payOne(transactions, newKey("b"))]);
    expect(begun).toBe(4);
    await pay(transactions, claimOf([newKey("c")]));
    expect(begun).toBe(5);
  });
});
