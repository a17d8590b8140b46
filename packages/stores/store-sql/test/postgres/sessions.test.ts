import { inspect } from "node:util";
import type { IdempotencyClaim } from "@countersign/idempotency";
import { expect } from "@jest/globals";
import type { Pool, PoolClient } from "pg";
import { describeOnPostgres } from "@countersign/test-support/servers/engines.ts";
import { pause } from "@countersign/test-support/runs/after-test.ts";
import { connectClient, connectPool, openStores, newStores } from "./connections.ts";
import { steadyTest as test } from "@countersign/test-support/runs/steadily.ts";
import { eventually } from "@countersign/test-support/runs/eventually.ts";

const claim: IdempotencyClaim = { token: "a", fingerprint: "f", leaseMs: 60_000, recovery: "rerun" };
const use = { scope: "s", nonce: "n", token: "a", retainMs: 60_000 };

async function settingsOf(pool: Pool): Promise<unknown> {
  const names =
    "'lock_timeout', 'synchronous_commit', 'statement_timeout', 'search_path', 'default_transaction_isolation'";
  return (await pool.query(`SELECT name, setting FROM pg_settings WHERE name IN (${names}) ORDER BY name`))
    .rows;
}

describeOnPostgres("the connections of the pool", () => {
  test("keep their settings, whatever runs on them", async () => {
    const options = "-c lock_timeout=7000 -c synchronous_commit=off";
    const { idempotency, nonces, pool } = await newStores({}, { max: 1, options });
    const before = await settingsOf(pool);
    await idempotency.claim("k", claim);
    await idempotency.heartbeat("k", "a", 1000);
    await idempotency.complete("k", "a");
    await idempotency.claim("k2", claim);
    await idempotency.hold("k2", "a", "why");
    await idempotency.resolve("k2", "released", { fence: (await idempotency.read("k2"))?.fence ?? 0 });
    await nonces.claim(use);
    await nonces.claim({ ...use, token: "b" });
    await idempotency.prune();
    await nonces.prune();
    expect(await settingsOf(pool)).toEqual(before);
    expect((await pool.query("SELECT count(*)::int AS count FROM pg_prepared_statements")).rows).toEqual([
      { count: 0 },
    ]);
    expect(
      (await pool.query("SELECT FROM pg_locks WHERE locktype = 'advisory' AND pid = pg_backend_pid()"))
        .rowCount,
    ).toBe(0);
  });

  test("keep a plan for each statement with the option prepare, however often it runs", async () => {
    const { idempotency, nonces, pool } = await newStores({ prepare: true }, { max: 1 });
    const statements = async (): Promise<readonly unknown[]> =>
      (await pool.query("SELECT name FROM pg_prepared_statements ORDER BY name")).rows;
    const pay = async (key: string): Promise<void> => {
      await nonces.claim({ ...use, nonce: key });
      expect(await idempotency.claim(key, claim)).toMatchObject({ status: "acquired" });
      expect(await idempotency.claim(key, { ...claim, token: "b" })).toMatchObject({ status: "in-flight" });
      expect(await idempotency.complete(key, "a")).toBe("ok");
    };
    await pay("k0");
    const first = await statements();
    expect(first.length).toBeGreaterThan(3);
    for (let index = 1; index < 10; index++) await pay(`k${index}`);
    expect(await statements()).toEqual(first);
    await pool.query("DISCARD ALL");
    await expect(idempotency.claim("k", claim)).rejects.toThrow(/leave out the option prepare/);
  });

  test.each([
    ["an uncommitted claim of the same key", "idempotency"],
    ["an uncommitted use of the same nonce", "nonces"],
  ] as const)(
    "wait for %s no longer than the lock timeout, although their own is longer",
    async (_case, table) => {
      const { idempotency, nonces, pool, schema } = await newStores(
        { lockTimeoutMs: 150 },
        { options: "-c lock_timeout=60000" },
      );
      const step = () => (table === "nonces" ? nonces.claim(use) : idempotency.claim("k", claim));
      await step();
      const client = await connectClient(pool);
      await client.query("BEGIN");
      await client.query(
        `CREATE TEMP TABLE kept ON COMMIT DROP AS SELECT * FROM ${schema}.countersign_${table}`,
      );
      await pool.query(`DELETE FROM ${schema}.countersign_${table}`);
      await client.query(`INSERT INTO ${schema}.countersign_${table} SELECT * FROM kept`);
      const begin = performance.now();
      await expect(step()).rejects.toMatchObject({
        message: expect.stringMatching(/stayed locked by another transaction/),
        cause: expect.objectContaining({ code: "55P03" }),
      });
      expect(performance.now() - begin).toBeGreaterThan(100);
      expect(performance.now() - begin).toBeLessThan(15_000);
      await client.query("ROLLBACK");
      await step();
    },
  );

  test("are refused while a transaction that has written is open on them: what is read there may never be", async () => {
    const { pool, schema, idempotency: sound, nonces: soundNonces } = await newStores();
    await sound.claim("k", claim);
    await sound.claim("mine", claim);
    await soundNonces.claim({ ...use, nonce: "used" });
    const leaked = connectPool({ max: 1 });
    // What the server itself tells, where the driver tells nothing.
    const silent = { query: (text: string, values?: unknown[]) => leaked.query(text, values) };
    const { idempotency, nonces } = openStores(silent, { schema });
    await idempotency.read("k");
    await leaked.query("BEGIN");
    await leaked.query(`UPDATE ${schema}.countersign_idempotency SET state = 'done' WHERE key = 'k'`);
    const refused = /a connection on which a transaction is open; COMMIT or ROLLBACK/;
    await expect(idempotency.read("k")).rejects.toThrow(refused);
    await expect(idempotency.claim("k", { ...claim, token: "b" })).rejects.toThrow(refused);
    await expect(idempotency.claim("new", claim)).rejects.toThrow(refused);
    await expect(idempotency.complete("mine", "a")).rejects.toThrow(refused);
    await expect(nonces.claim(use)).rejects.toThrow(refused);
    await expect(nonces.claim({ ...use, nonce: "used", token: "b" })).rejects.toThrow(refused);
    await leaked.query("COMMIT");
    expect(await idempotency.read("new")).toBeUndefined();
    expect(await sound.read("mine")).toMatchObject({ state: "running" });
    expect(await nonces.claim(use)).toBe("fresh");
    expect((await pool.query(`SELECT FROM ${schema}.countersign_nonces`)).rowCount).toBe(2);
  });

  test("are refused in a transaction of a run before it has written, whatever the driver tells", async () => {
    const { pool, schema, idempotency: sound } = await newStores();
    await sound.claim("mine", claim);
    await sound.claim("expired", { ...claim, leaseMs: 1 });
    await pause(5);
    const refused = /a connection on which a transaction is open/;
    await inTransaction(pool, async (client) => {
      await client.query("SELECT set_config('countersign.run', 'some run', true)");
      const silent = { query: (text: string, values?: unknown[]) => client.query(text, values) };
      const { idempotency, nonces } = openStores(silent, { schema });
      await expect(idempotency.read("mine")).rejects.toThrow(refused);
      await expect(idempotency.claim("new", claim)).rejects.toThrow(refused);
      await expect(idempotency.claim("expired", { ...claim, token: "b" })).rejects.toThrow(refused);
      await expect(idempotency.complete("mine", "a")).rejects.toThrow(refused);
      await expect(idempotency.release("mine", "a")).rejects.toThrow(refused);
      await expect(idempotency.heartbeat("mine", "a", 1000)).rejects.toThrow(refused);
      await expect(nonces.claim(use)).rejects.toThrow(refused);
    });
    expect(await sound.read("new")).toBeUndefined();
    expect(await sound.read("mine")).toMatchObject({ state: "running", token: "a" });
  });

  test.each([
    ["BEGIN", "BEGIN"],
    ["BEGIN and a look at something", "BEGIN; SELECT 1"],
  ])(
    "are refused and ended when they come back to the pool after %s, so that no rollback undoes a step",
    async (_case, begin) => {
      const { idempotency, nonces, pool } = await newStores({}, { max: 1 });
      const leak = async () => {
        const client = await pool.connect();
        await client.query(begin);
        client.release();
      };
      const steps = [
        () => idempotency.claim("k", claim),
        () => idempotency.read("k"),
        () => nonces.claim(use),
        () => nonces.prune(),
      ];
      await idempotency.read("k");
      for (const step of steps) {
        await leak();
        await expect(step()).rejects.toThrow(
          /a connection on which a transaction is open; COMMIT or ROLLBACK/,
        );
        await expect(pool.query("LOCK TABLE pg_class IN ACCESS SHARE MODE")).rejects.toMatchObject({
          code: "25P01",
        });
      }
      expect(await idempotency.read("k")).toBeUndefined();
      expect(await nonces.claim({ ...use, token: "b" })).toBe("fresh");
    },
  );

  test("outlive the heartbeats and claims that find a row locked", async () => {
    const { idempotency, pool, schema } = await newStores({ lockTimeoutMs: 50 }, { max: 1 });
    await idempotency.claim("k", { ...claim, leaseMs: 1 });
    await pause(5);
    const backend = async () => (await pool.query("SELECT pg_backend_pid() AS pid")).rows;
    const before = await backend();
    await inTransaction(connectPool(), async (client) => {
      await client.query(`SELECT FROM ${schema}.countersign_idempotency FOR UPDATE`);
      await expect(idempotency.heartbeat("k", "a", 1_000)).rejects.toThrow(/stayed locked/);
      await expect(idempotency.claim("k", { ...claim, token: "b" })).rejects.toThrow(/stayed locked/);
    });
    expect(await backend()).toEqual(before);
    expect(await idempotency.heartbeat("k", "a", 1_000)).toBe("ok");
  });

  test("are ended when a step finds a row locked in somebody's transaction", async () => {
    const { idempotency, pool, schema } = await newStores({ lockTimeoutMs: 50 }, { max: 1 });
    await idempotency.claim("k", claim);
    const client = await pool.connect();
    await client.query("BEGIN");
    client.release();
    await inTransaction(connectPool(), async (other) => {
      await other.query(`SELECT FROM ${schema}.countersign_idempotency FOR UPDATE`);
      await expect(idempotency.heartbeat("k", "a", 1_000)).rejects.toThrow(/stayed locked/);
    });
    expect(await idempotency.heartbeat("k", "a", 1_000)).toBe("ok");
  });

  test("of a client in place of the pool are refused while its transaction is open", async () => {
    const { schema } = await newStores();
    const client = await connectClient(connectPool());
    const { idempotency, nonces } = openStores(client, { schema });
    expect((await idempotency.claim("before", claim)).status).toBe("acquired");
    await client.query("BEGIN");
    const refused = /a connection on which a transaction is open/;
    await expect(idempotency.claim("k", claim)).rejects.toThrow(refused);
    await expect(nonces.claim(use)).rejects.toThrow(refused);
    await client.query("ROLLBACK");
    expect((await idempotency.claim("k", { ...claim, token: "b" })).status).toBe("acquired");
    expect(await nonces.claim({ ...use, token: "b" })).toBe("fresh");
  });

  test("leave no listener on the clients that they come from", async () => {
    const { idempotency, pool } = await newStores({}, { max: 1 });
    await idempotency.read("k");
    const count = async () => {
      const client = await pool.connect();
      const { length } = client.listeners("error");
      client.release();
      return length;
    };
    const before = await count();
    for (let i = 0; i < 3; i++) await idempotency.read("k");
    expect(await count()).toBe(before);
  });

  test("may be killed: the step fails, the next one works, and a claim whose answer was lost recognises itself", async () => {
    const { idempotency, nonces, pool } = await newStores({}, { max: 1 });
    const killer = connectPool({ max: 1 });
    const kill = async () => {
      const [{ pid }] = (await pool.query("SELECT pg_backend_pid() AS pid")).rows as [{ pid: number }];
      await killer.query("SELECT pg_terminate_backend($1)", [pid]);
      await pause(50);
    };
    const first = await idempotency.claim("k", claim);
    await kill();
    const again = await idempotency.claim("k", claim).catch(() => idempotency.claim("k", claim));
    expect(again).toEqual(first);
    await kill();
    expect(await nonces.claim(use).catch(() => nonces.claim(use))).toBe("fresh");
    await kill();
    expect(await idempotency.complete("k", "a").catch(() => idempotency.complete("k", "a"))).toBe("ok");
  });

  test("may be killed while a claim waits: it fails and leaves nothing", async () => {
    const { idempotency, pool, schema } = await newStores({ lockTimeoutMs: 20_000 });
    await idempotency.claim("k", { ...claim, leaseMs: 1 });
    await pause(5);
    const client = await connectClient(pool);
    await client.query("BEGIN");
    await client.query(`SELECT FROM ${schema}.countersign_idempotency FOR UPDATE`);
    const waiting = expect(idempotency.claim("k", { ...claim, token: "b" })).rejects.toThrow(/terminat/);
    const blocked = `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE '%${schema}%'`;
    await eventually(async () => (await pool.query(blocked)).rowCount !== 0);
    await waiting;
    await client.query("ROLLBACK");
    expect(await idempotency.read("k")).toMatchObject({ state: "running", token: "a" });
  });
});

describeOnPostgres("a pool with nothing behind it", () => {
  test("makes every step reject, and shows no password", async () => {
    const { schema } = await newStores();
    const dead = connectPool({ connectionString: "postgres://user:hunter2@127.0.0.1:1/none" });
    const { idempotency, nonces, ready } = openStores(dead, { schema });
    for (const step of [() => idempotency.claim("k", claim), () => nonces.claim(use), () => ready()]) {
      const [settled] = await Promise.allSettled([step()]);
      expect(settled).toMatchObject({ status: "rejected", reason: { code: "ECONNREFUSED" } });
      expect(inspect(settled, { depth: 10 })).not.toContain("hunter2");
    }
  });

  test.each([
    ["no rows", {}],
    ["rows that are arrays of nothing", { rows: [null] }],
    ["no row where there must be one", { rows: [] }],
  ])("rejects when the driver answers %s", async (_case, answer) => {
    const pool = { query: () => Promise.resolve(answer as { rows: unknown[] }) };
    const { idempotency } = openStores(pool, {});
    await expect(idempotency.read("k")).rejects.toThrow(
      /the (?:PostgreSQL driver returned no \{ rows \}|database library gave no row)/,
    );
  });
});

async function inTransaction(pool: Pool, work: (client: PoolClient) => Promise<void>): Promise<void> {
  const client = await pool.connect();
  try {
    await client.query("BEGIN");
    await work(client);
    await client.query("COMMIT");
  } finally {
    client.release();
  }
}
