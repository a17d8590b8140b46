// What the kit cannot know: MariaDB's own ways.
import { createMariadbStores, createTables, withTransaction } from "@countersign/example-custom-store";
import { setTimeout as pause } from "node:timers/promises";
import { afterAll, afterEach, beforeAll, expect, test } from "@jest/globals";
import { createPool, type Pool, type PoolConnection } from "mysql2/promise";
import { describeOnMariadb, mariadbUrl } from "./server/mariadb.ts";
import { dropTables, newPrefix } from "./tables.ts";

const uri = mariadbUrl ?? "";
const prefix = newPrefix();
const key = "payout-7.acc-1.acc-2";
const claim = { token: "a", fingerprint: "f", leaseMs: 60_000, recovery: "rerun" } as const;

describeOnMariadb("the stores on MariaDB", () => {
  let pool: Pool;
  const { idempotency, nonces, close } = createMariadbStores({ uri, prefix, pruneIntervalMs: 0 });

  beforeAll(async () => {
    pool = createPool({ uri });
    await createTables(pool, prefix);
  });
  afterEach(async () => {
    await pool.query(`DELETE FROM ${prefix}_keys`);
  });
  afterAll(async () => {
    await close();
    await dropTables(pool, prefix);
    await pool.end();
  });

  /** On a connection of its own kind, which does not go back. */
  async function onConnection<T>(
    settings: string,
    work: (connection: PoolConnection) => Promise<T>,
  ): Promise<T> {
    const connection = await pool.getConnection();
    try {
      await connection.query(settings);
      return await work(connection);
    } finally {
      connection.destroy();
    }
  }

  test("create their tables once more without harm", async () => {
    await idempotency.claim(key, claim);
    await createTables(pool, prefix);
    expect(await idempotency.read(key)).toMatchObject({ state: "run", token: "a" });
  });

  test("completeIn throws on a pool, and on a connection without a transaction, and changes nothing", async () => {
    await idempotency.claim(key, claim);
    await expect(idempotency.completeIn(pool, key, "a")).rejects.toThrow(
      /transaction is open, .+; got a pool/,
    );
    await onConnection("SET autocommit = 1", async (connection) => {
      await expect(idempotency.completeIn(connection, key, "a")).rejects.toThrow(/transaction is open/);
    });
    expect(await idempotency.read(key)).toMatchObject({ state: "run" });
  });

  test.each<[string, (connection: PoolConnection) => unknown, RegExp]>([
    ["nothing", () => undefined, /needs the connection .+; got undefined\. See http/],
    ["a pool", () => pool, /got a pool\. See http/],
    ["a connection with callbacks", ({ connection }) => connection, /got a connection of mysql2, not of/],
    ["an ORM's handle", () => ({ query: () => [] }), /has no function execute\. See http/],
  ])("completeIn throws a TypeError at %s, and changes nothing", async (_case, given, message) => {
    await idempotency.claim(key, claim);
    await onConnection("BEGIN", async (connection) => {
      const completed = idempotency.completeIn(given(connection) as PoolConnection, key, "a");
      await expect(completed).rejects.toThrow(TypeError);
      await expect(completed).rejects.toThrow(message);
    });
    expect(await idempotency.read(key)).toMatchObject({ state: "run" });
  });

  test.each([
    ["another character set", "SET NAMES latin1"],
    ["another time zone", "SET time_zone = '-11:00'"],
    ["no strict mode", "SET sql_mode = ''"],
    ["a stricter isolation", "SET SESSION TRANSACTION ISOLATION LEVEL SERIALIZABLE"],
    ["quotes and pipes of another meaning", "SET sql_mode = 'ANSI'"],
  ])("completeIn works in a session with %s", async (_name, settings) => {
    const [ofKey, token] = ["ключ-é", "жетон-é"];
    const { fence } = (await idempotency.claim(ofKey, { ...claim, token })) as { fence: number };
    await onConnection(settings, async (connection) => {
      await connection.beginTransaction();
      expect(await idempotency.completeIn(connection, ofKey, token)).toBe("ok");
      await connection.commit();
    });
    expect(await idempotency.read(ofKey)).toEqual({ state: "done", token, fence, fingerprint: "f" });
    const [[row]] = (await pool.query(`SELECT until_us AS untilUs FROM ${prefix}_keys`)) as never as [
      [{ untilUs: number }],
    ];
    const remainingMs = row.untilUs / 1_000 - Date.now();
    expect(Math.abs(remainingMs - (idempotency.retentionMs ?? 0))).toBeLessThan(60_000);
  });

  test("completeIn goes by what others have committed since the snapshot of its transaction", async () => {
    await idempotency.claim(key, claim);
    const answer = withTransaction(pool, async (connection) => {
      await connection.query(`SELECT COUNT(*) FROM ${prefix}_keys`);
      await idempotency.complete(key, "a");
      // Under innodb_snapshot_isolation, the default of later servers, the server refuses instead.
      return idempotency.completeIn(connection, key, "a").catch(() => "lost");
    });
    expect(await answer).toBe("lost");
  });

  test("a deadlock is the platform's to repeat: payment and key are rolled back together", async () => {
    await idempotency.claim(key, claim);
    await idempotency.claim("other", claim);
    const settled = await Promise.allSettled(
      [
        [key, "other"],
        ["other", key],
      ].map((keys) =>
        withTransaction(pool, async (connection) => {
          for (const each of keys) {
            if ((await idempotency.completeIn(connection, each, "a")) === "lost") throw new Error("lost");
            await pause(100);
          }
        }),
      ),
    );
    expect(new Set(settled.map(({ status }) => status))).toEqual(new Set(["fulfilled", "rejected"]));
    const states = await Promise.all(
      [key, "other"].map(async (each) => (await idempotency.read(each))?.state),
    );
    expect(states).toEqual(["done", "done"]);
  });

  test("a deadlock in a step of the stores is theirs to repeat", async () => {
    let nowMs = 1_800_000_000_000;
    const pruning = createMariadbStores({ uri, prefix, pruneIntervalMs: 0, now: () => nowMs });
    try {
      await pruning.idempotency.claim(key, claim);
      await pruning.idempotency.complete(key, "a");
      nowMs += (pruning.idempotency.retentionMs ?? 0) + 1;
      let pruned: Promise<number> | undefined;
      await onConnection("START TRANSACTION", async (connection) => {
        // The server ends the one that has written less.
        const rows = Array.from({ length: 100 }, (_, index) => `(UNHEX(SHA2('${index}', 256)), '', 0)`);
        await connection.query(
          `INSERT INTO ${prefix}_nonces (digest, token, until_us) VALUES ${rows.join(", ")}`,
        );
        await connection.query(`SELECT fence FROM ${prefix}_floor FOR UPDATE`);
        pruned = Promise.resolve(pruning.idempotency.prune());
        await pause(200);
        await connection.query(`SELECT id FROM ${prefix}_keys FOR UPDATE`);
        await connection.query("ROLLBACK");
      });
      expect(await pruned).toBe(1);
    } finally {
      await pruning.close();
    }
  });

  test("a heartbeat of the same end as before is ok: found, though nothing changed", async () => {
    const frozen = createMariadbStores({ uri, prefix, pruneIntervalMs: 0, now: () => 1_800_000_000_000 });
    try {
      await frozen.idempotency.claim(key, claim);
      expect(await frozen.idempotency.heartbeat(key, "a", claim.leaseMs)).toBe("ok");
    } finally {
      await frozen.close();
    }
  });

  test("an open completeIn keeps other steps waiting for a second or so, then they throw", async () => {
    await idempotency.claim(key, claim);
    await withTransaction(pool, async (connection) => {
      await idempotency.completeIn(connection, key, "a");
      const before = performance.now();
      await expect(idempotency.release(key, "a")).rejects.toThrow(/Lock wait timeout/);
      expect(performance.now() - before).toBeLessThan(3_000);
    });
    expect(await idempotency.read(key)).toMatchObject({ state: "done" });
  });

  test("more claims at once than there are connections are all answered", async () => {
    const results = await Promise.all(
      Array.from({ length: 60 }, async (_, index) =>
        idempotency.claim(`key-${index % 20}`, { ...claim, token: `t-${index}` }),
      ),
    );
    expect(results.filter(({ status }) => status === "acquired")).toHaveLength(20);
    const uses = Array.from({ length: 60 }, (_, index) =>
      nonces.claim({ scope: "s", nonce: `n-${index % 20}`, token: `t-${index}`, retainMs: 60_000 }),
    );
    expect((await Promise.all(uses)).filter((answer) => answer === "fresh")).toHaveLength(20);
  });

  test("what has expired goes by itself", async () => {
    let nowMs = 1_800_000_000_000;
    const pruning = createMariadbStores({ uri, prefix, pruneIntervalMs: 20, now: () => nowMs });
    const count = async (): Promise<number> => {
      const [rows] = await pool.query(`SELECT 1 FROM ${prefix}_keys`);
      return (rows as unknown[]).length;
    };
    try {
      await pruning.idempotency.claim(key, claim);
      await pruning.idempotency.complete(key, "a");
      await pruning.idempotency.claim("running", claim);
      nowMs += (pruning.idempotency.retentionMs ?? 0) + 1;
      for (const end = Date.now() + 10_000; (await count()) > 1 && Date.now() < end;) await pause(20);
      expect(await pruning.idempotency.read("running")).toMatchObject({ state: "run" });
      expect(await count()).toBe(1);
    } finally {
      await pruning.close();
    }
  });

  test("a damaged cursor throws", async () => {
    await expect(idempotency.list({ state: "run", limit: 1, cursor: "zz" })).rejects.toThrow(TypeError);
  });

  test.each([
    ["a prefix that ends the quotes", { uri, prefix: "a`b" }],
    ["an empty prefix", { uri, prefix: "" }],
    ["a short retention", { uri, retentionMs: 1 }],
    ["an unknown option", { uri, table: "x" }],
    ["no uri", {}],
  ])("refuses %s", (_name, options) => {
    expect(() => createMariadbStores(options as never)).toThrow(TypeError);
  });
});
