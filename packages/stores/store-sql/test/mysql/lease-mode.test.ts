// Lease mode on the table of keys: what one statement sees of others, and of the connection that it comes by.
import { fromMysql2 } from "@countersign/store-sql/mysql2";
import type { Database } from "@countersign/idempotency";
import { testClock } from "@countersign/test-support/runs/after-test.ts";
import { describeOnMysql, mysqlEngine } from "@countersign/test-support/servers/engines.ts";
import { expect, test } from "@jest/globals";
import type { PoolConnection } from "mysql2/promise";
import { connectPool, openStores, newStores, untilBlocked } from "./connections.ts";
import { claimOf, newKey, pay } from "./transactions.ts";

const claim = { token: "a", fingerprint: "f", leaseMs: 60_000, recovery: "rerun" } as const;

type Scene = Awaited<ReturnType<typeof newStores>>;

/** Others' steps on a key, and a store that waits for them between a look and its next write. */
async function newRace(
  meanwhile: (scene: Scene & { clock: ReturnType<typeof testClock> }) => Promise<unknown>,
) {
  const clock = testClock();
  const scene = await newStores({ now: clock.now });
  const { pool, table } = scene;
  const whole = fromMysql2(pool);
  let others: Promise<unknown> | undefined;
  const database: Database<PoolConnection> = {
    ...whole,
    async change(...statement) {
      await (others ??= meanwhile({ ...scene, clock }));
      return (await whole.change?.(...statement)) ?? Number.NaN;
    },
  };
  return { ...scene, clock, racing: openStores(pool, { table, now: clock.now, database }).idempotency };
}

describeOnMysql("steps of lease mode", () => {
  test.each(["START TRANSACTION", "SET autocommit = 0"])(
    "write nothing on such a connection, also where the look before came by another one: %s",
    async (careless) => {
      const { pool, table, idempotency: sound } = await newStores();
      const one = connectPool({ connectionLimit: 1 });
      const database = fromMysql2(one);
      const { idempotency } = openStores(one, {
        table,
        database: { ...database, alone: fromMysql2(pool).alone },
      });
      await idempotency.claim("k", claim);
      const before = await sound.read("k");
      await one.query(careless);
      const open = /on which a transaction is open/;
      if (mysqlEngine === "mysql") {
        // There the answer tells, when the row is written: the claim is refused, and a lease without an owner ends.
        await expect(idempotency.claim("new", claim)).rejects.toThrow(open);
        await expect(idempotency.complete("k", "a")).rejects.toThrow(open);
        expect(await idempotency.heartbeat("k", "b", 90_000)).toBe("lost");
        await one.query("ROLLBACK");
        expect(await sound.read("k")).toEqual(expect.objectContaining({ state: "running" }));
        return;
      }
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
    const other = openStores(dirty, { table }).idempotency;
    await idempotency.claim("k", claim);
    let asked: Promise<unknown>[] = [];
    const paying = database.run(async (tx) => {
      await tx.query(`UPDATE ${table}_idempotency SET state = 'done', version = version + 1`);
      asked = [other.claim("k", { ...claim, token: "b" }), other.read("k"), other.complete("k", "b")];
      await Promise.race([untilBlocked(pool, table, 3), Promise.all(asked.slice(0, 2))]);
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
      openStores(pool, { table }).idempotency.claim("k", { ...claim, token }),
    );
    const statuses = (await Promise.all(both)).map(({ status }) => status);
    expect(new Set(statuses)).toEqual(new Set(["acquired", "in-flight"]));
    const { idempotency } = openStores(pool, { table });
    expect(await idempotency.read("k")).toMatchObject({ fence: highest + 1 });
  });

  test.each<[string, Parameters<typeof newRace>[0], object]>([
    [
      "its owner has renewed",
      ({ idempotency }) => idempotency.heartbeat("k", "a", 60_000),
      { status: "in-flight" },
    ],
    [
      "a transaction's claim has left to an operator",
      ({ transactions }) => pay(transactions, claimOf([newKey("k")], { recovery: "hold" })),
      { status: "held", reason: "lease-expired" },
    ],
    ["its owner has completed", ({ idempotency }) => idempotency.complete("k", "a"), { status: "done" }],
    [
      "another one has taken over",
      ({ idempotency }) => idempotency.claim("k", { ...claim, token: "c" }),
      { status: "in-flight" },
    ],
  ])("take no expired key over that %s since they looked", async (_case, meanwhile, answer) => {
    const { idempotency, racing, clock } = await newRace(meanwhile);
    await idempotency.claim("k", claim);
    clock.advance(60_000);
    expect(await racing.claim("k", { ...claim, token: "b" })).toMatchObject(answer);
  });

  test("add no key that another one has added since they looked, and tell of it", async () => {
    const { racing } = await newRace(({ idempotency }) => idempotency.claim("k", claim));
    expect(await racing.claim("k", { ...claim, token: "b" })).toMatchObject({ status: "in-flight" });
  });

  test("write no completion over an attempt that has replaced their own", async () => {
    const { idempotency, racing } = await newRace(async ({ clock, ...others }) => {
      clock.advance(60_000);
      await others.idempotency.claim("k", { ...claim, token: "b" });
    });
    await idempotency.claim("k", claim);
    expect(await racing.complete("k", "a")).toBe("lost");
    expect(await idempotency.read("k")).toMatchObject({ state: "running", token: "b" });
  });

  test("take a key over with a fence above the last one, also when the clock was set back", async () => {
    const clock = testClock();
    const { idempotency } = await newStores({ now: clock.now });
    const first = await idempotency.claim("k", claim);
    await idempotency.release("k", "a");
    clock.advance(-60_000);
    const second = await idempotency.claim("k", { ...claim, token: "b" });
    const { fence } = (await idempotency.read("k")) ?? {};
    expect(second).toEqual({ status: "acquired", fence });
    expect(fence).toBeGreaterThan(Number(Reflect.get(first, "fence")));
    clock.advance(120_000);
    expect(await idempotency.claim("k", { ...claim, token: "c" })).toEqual({
      status: "acquired",
      fence: clock.now() * 1_000,
    });
  });
});
