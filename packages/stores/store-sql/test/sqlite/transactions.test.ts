import { steadyTest } from "@countersign/test-support/runs/steadily.ts";
import { describe, expect, test } from "@jest/globals";
import { type Connection, connect, openStores, drivers, temporaryFile } from "./connections.ts";
import { waitsForWriteLock } from "./lock-holder.ts";
import { claimOf, failureOf, insert, key, platform } from "./payments.ts";

/** Each driver has it. */
function rowsOf(tx: Connection): { iterate(): IterableIterator<unknown> } {
  return tx.prepare("SELECT id FROM payouts") as unknown as { iterate(): IterableIterator<unknown> };
}

/** Not node:sqlite. */
function hasTransactions(
  tx: Connection,
): tx is Connection & { transaction(work: () => void): (() => unknown) & { immediate(): unknown } } {
  return "transaction" in tx;
}

function busyTimeoutOf(database: Connection): unknown {
  return (database.prepare("PRAGMA busy_timeout").get() as { timeout: unknown }).timeout;
}

describe.each(drivers)("transactions.run(), %s", (_driver, open) => {
  test("gives the handler the connection, resolves to its result, and restores the busy timeout", async () => {
    const { database, transactions } = platform(open);
    database.exec("PRAGMA busy_timeout = 7777");
    const result = await transactions.run((tx) => {
      expect(tx).toBeInstanceOf(database.constructor);
      expect(busyTimeoutOf(tx)).toBe(7777);
      return 5;
    });
    expect(result).toBe(5);
    expect(busyTimeoutOf(database)).toBe(7777);
  });

  test("refuses an asynchronous handler with a TypeError, and rolls its first part back", async () => {
    const { transactions, paid } = platform(open);
    const promising = transactions.run(async (tx) => {
      insert(tx, "a");
      throw new Error("nobody waits for it");
    });
    await expect(promising).rejects.toThrow(TypeError);
    await expect(promising).rejects.toThrow(/must be synchronous/);
    expect(paid()).toEqual([]);
  });

  test("holds the key of an asynchronous handler, whose tx refuses what comes behind its first await", async () => {
    const { database, transactions, idempotency, paid } = platform(open);
    const promising = transactions.run(async (tx) => {
      await transactions.begin(tx, claimOf(key));
      expect(() => insert(tx, "late")).toThrow("the handler's transaction is closed");
      insert(database, "by another name");
    });
    await expect(promising).rejects.toThrow(TypeError);
    expect(paid()).toEqual(["by another name"]);
    expect(idempotency.read(key.key)).toMatchObject({ state: "held", reason: "transaction-broken" });
  });

  test("refuses what a handler's tx, its statements and their iterators are asked for behind its end (I26)", async () => {
    const { transactions, paid } = platform(open);
    const late: (() => unknown)[] = [];
    await transactions.run((tx) => {
      insert(tx, "a");
      const write = tx.prepare("INSERT INTO payouts VALUES ('late')");
      const read = rowsOf(tx);
      const rows = read.iterate();
      expect(rows.next().value).toEqual(expect.objectContaining({ id: "a" }));
      rows.return?.();
      late.push(
        () => tx.exec("INSERT INTO payouts VALUES ('late')"),
        () => tx.prepare("SELECT 1"),
        () => write.run(),
        () => read.iterate(),
        () => rows.next(),
      );
      if (hasTransactions(tx)) {
        const inner = tx.transaction(() => insert(tx, "late"));
        late.push(inner, () => inner.immediate());
      }
    });
    for (const call of late) expect(call).toThrow("the handler's transaction is closed");
    expect(paid()).toEqual(["a"]);
  });

  test("lets a statement that a handler keeps work in the next transaction", async () => {
    const { transactions, paid } = platform(open);
    let kept: { run(): unknown } | undefined;
    const pay = () =>
      transactions.run((tx) => {
        kept ??= tx.prepare("INSERT INTO payouts VALUES ('p' || (SELECT count(*) FROM payouts))");
        kept.run();
      });
    await pay();
    await pay();
    expect(paid()).toEqual(["p0", "p1"]);
  });

  steadyTest("waits for the write lock of another process while the event loop goes on", async () => {
    const { file, database, transactions, paid } = platform(open);
    let isBegun = false;
    const pay = () =>
      transactions.run((tx) => {
        isBegun = true;
        insert(tx, "a");
      });
    await waitsForWriteLock(file, pay, () => {
      expect(isBegun).toBe(false);
      expect(busyTimeoutOf(database)).toBe(5000);
    });
    expect(paid()).toEqual(["a"]);
  });

  test("refuses to begin inside another transaction, which it leaves as it is", async () => {
    const { database, transactions, paid } = platform(open);
    database.exec("BEGIN IMMEDIATE");
    insert(database, "theirs");
    await expect(transactions.run((tx) => insert(tx, "mine"))).rejects.toThrow(/a transaction is open/);
    database.exec("COMMIT");
    const inner: Promise<void>[] = [];
    await transactions.run((tx) => {
      inner.push(transactions.run(() => insert(tx, "inner")));
      insert(tx, "outer");
    });
    await expect(inner[0]).rejects.toThrow(/a transaction is open/);
    expect(paid()).toEqual(["outer", "theirs"]);
  });

  test("looks again after each pause whether another transaction is open on the connection", async () => {
    const { file, database, transactions, paid } = platform(open);
    const other = connect(file, open);
    other.exec("BEGIN IMMEDIATE");
    const payment = failureOf(transactions.run((tx) => insert(tx, "mine")));
    other.exec("COMMIT");
    database.exec("BEGIN IMMEDIATE");
    expect(String(await payment)).toMatch(/a transaction is open/);
    database.exec("ROLLBACK");
    expect(paid()).toEqual([]);
  });

  test("rolls back where COMMIT fails, with that error", async () => {
    const { database, transactions, idempotency } = platform(open);
    database.exec("PRAGMA foreign_keys = ON");
    database.exec(
      "CREATE TABLE lines (payout TEXT REFERENCES payouts (id) DEFERRABLE INITIALLY DEFERRED) STRICT",
    );
    const failing = transactions.run((tx) => {
      void transactions.begin(tx, claimOf(key));
      tx.exec("INSERT INTO lines VALUES ('none')");
      void transactions.keep(tx, [key], false);
    });
    const error = await failureOf(failing);
    expect(transactions.faultOf(error)).toBe("refused");
    expect(idempotency.read(key.key)).toBeUndefined();
  });
});

test("a connection on which BEGIN opens nothing is refused with a TypeError", async () => {
  const database = connect(temporaryFile());
  let answers = (): boolean => Boolean(database.inTransaction);
  const pooled = {
    exec: (sql: string) => database.exec(sql),
    prepare: (sql: string) => database.prepare(sql),
    get inTransaction() {
      return answers();
    },
  };
  const { transactions } = openStores(pooled);
  answers = () => false;
  await expect(transactions.run(() => 1)).rejects.toThrow(TypeError);
  database.exec("ROLLBACK");
});

test.each([
  ["drops", "BEFORE UPDATE ON countersign_idempotency BEGIN SELECT RAISE(IGNORE); END"],
  [
    "takes back",
    `AFTER UPDATE ON countersign_idempotency WHEN new.state = 'free' BEGIN
       UPDATE countersign_idempotency SET state = 'running' WHERE key = new.key; END`,
  ],
])("free() whose UPDATE a trigger %s leaves no key", async (_how, trigger) => {
  const { transactions, database, idempotency } = platform();
  database.exec(`CREATE TRIGGER ours ${trigger}`);
  const freed = transactions.run((tx) => {
    void transactions.begin(tx, claimOf(key));
    void transactions.free(tx, [key]);
  });
  await expect(freed).rejects.toThrow(/did not free the keys/);
  expect(idempotency.read(key.key)).toBeUndefined();
});

describe("begin(), keep() and assertOpen() refuse", () => {
  test("another connection", async () => {
    const { transactions, idempotency } = platform();
    const other = connect(temporaryFile());
    await expect(transactions.run(() => transactions.begin(other, claimOf(key)))).rejects.toThrow(TypeError);
    expect(idempotency.read(key.key)).toBeUndefined();
  });

  test("a connection without a transaction, and every call after close", async () => {
    const { transactions, database, close } = platform();
    expect(() => transactions.begin(database, claimOf(key))).toThrow(/no transaction is open/);
    close();
    await expect(transactions.run(() => 1)).rejects.toThrow(/closed/);
  });
});
