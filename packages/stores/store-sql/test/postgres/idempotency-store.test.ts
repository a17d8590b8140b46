import type { IdempotencyClaim } from "@countersign/idempotency";
import type { TableStore } from "@countersign/idempotency/store";
import type { ServerNonceStore } from "@countersign/store-sql";
import { beforeEach, describe, expect, test } from "@jest/globals";
import type { Pool } from "pg";
import { describeOnPostgres } from "@countersign/test-support/servers/engines.ts";
import { eventually } from "@countersign/test-support/runs/eventually.ts";
import { testClock } from "@countersign/test-support/runs/after-test.ts";
import { openStores, dayMs, newStores } from "./connections.ts";

const key = "payout-7.acc-1.acc-2";
const leaseMs = 3000;

function claim(token: string, over: Partial<IdempotencyClaim> = {}): IdempotencyClaim {
  return { token, fingerprint: `fingerprint-${token}`, leaseMs, recovery: "rerun", ...over };
}

async function fenceOf(
  store: TableStore<"async">,
  token: string,
  over?: Partial<IdempotencyClaim>,
): Promise<number> {
  const result = await store.claim(key, claim(token, over));
  if (result.status !== "acquired") throw new Error(`${token} did not acquire: ${result.status}`);
  return result.fence;
}

describeOnPostgres("idempotency store with a clock that the test moves", () => {
  let clock: ReturnType<typeof testClock>;
  let store: TableStore<"async">;
  let nonces: ServerNonceStore;
  let pool: Pool;
  let schema: string;

  beforeEach(async () => {
    clock = testClock();
    ({ idempotency: store, nonces, pool, schema } = await newStores({ now: clock.now }));
  });

  test("holds an expired run for whatever is not clearly rerun", async () => {
    await store.claim(key, claim("a"));
    clock.advance(leaseMs);
    const unclear = claim("b", { recovery: undefined as unknown as "rerun" });
    expect((await store.claim(key, unclear)).status).toBe("held");
  });

  test("takes no key whose owner has renewed the lease since it was seen", async () => {
    await store.claim(key, claim("a"));
    clock.advance(leaseMs);
    let looks = 0;
    const late = {
      async query(text: string, values?: unknown[]) {
        const result = await pool.query(text, values);
        if (text.includes("is_alone") && ++looks === 1)
          expect(await store.heartbeat(key, "a", leaseMs)).toBe("ok");
        return result;
      },
    };
    const { idempotency } = openStores(late, { schema, now: clock.now });
    const inFlight = { status: "in-flight", fingerprint: "fingerprint-a", remainingMs: leaseMs };
    expect(await idempotency.claim(key, claim("b"))).toEqual(inFlight);
    expect(looks).toBeGreaterThan(1);
  });

  test("keeps no reason on a key that is held no longer, and a released one for a day", async () => {
    const decide = async (held: string, outcome: "done" | "released") => {
      const record = await store.read(held);
      expect(await store.resolve(held, outcome, { fence: record?.fence ?? 0 })).toBe("ok");
    };
    const steps: Record<string, (held: string) => Promise<unknown>> = {
      completed: (held) => store.complete(held, "a"),
      resolved: (held) => decide(held, "done"),
      retried: async (held) => {
        await decide(held, "released");
        await store.claim(held, claim("b"));
      },
      released: (held) => decide(held, "released"),
    };
    for (const [held, step] of Object.entries(steps)) {
      await store.claim(held, claim("a"));
      await store.hold(held, "a", "why");
      await step(held);
    }
    clock.advance(dayMs - 1);
    await store.prune();
    const { rows } = await pool.query(
      `SELECT key, reason FROM ${schema}.countersign_idempotency ORDER BY key`,
    );
    const kept = ["completed", "released", "resolved", "retried"].map((each) => ({ key: each, reason: "" }));
    expect(rows).toEqual(kept);
  });

  test("takes no argument that StoreGate refuses, at any step", async () => {
    const steps = [
      store.claim("", claim("a")),
      store.claim(key, claim("a", { leaseMs: 0 })),
      store.heartbeat(key, "a", 0),
      store.complete(key, ""),
      store.release(key, ""),
      store.hold(key, "a", ""),
      store.list({ state: "running", limit: 0 }),
    ];
    for (const step of steps) await expect(step).rejects.toThrow(TypeError);
  });

  test("takes the longest lease, and the longest retention of a nonce, that can be written", async () => {
    const longest = { leaseMs: Number.MAX_SAFE_INTEGER };
    await store.claim(key, claim("a", longest));
    clock.advance(1000 * dayMs);
    expect((await store.claim(key, claim("b", longest))).status).toBe("in-flight");
    const use = { scope: "s", nonce: "n", token: "a", retainMs: Number.MAX_SAFE_INTEGER };
    expect(await nonces.claim(use)).toBe("fresh");
    clock.advance(1000 * dayMs);
    expect(await nonces.claim({ ...use, token: "b" })).toBe("seen");
  });

  describe("when the server's clock is set back", () => {
    const hourMs = 3_600_000;
    const row = async () =>
      (await pool.query(`SELECT xmax::text, ctid::text, until_at FROM ${schema}.countersign_idempotency`))
        .rows;

    test("writes nothing for a duplicate that comes once the lease has been cut, nor before", async () => {
      await store.claim(key, claim("a"));
      const before = await row();
      expect((await store.claim(key, claim("b"))).status).toBe("in-flight");
      expect(await row()).toEqual(before);
      clock.advance(-hourMs);
      await store.claim(key, claim("b"));
      const cut = await row();
      expect(cut).not.toEqual(before);
      expect((await store.claim(key, claim("c"))).status).toBe("in-flight");
      expect(await row()).toEqual(cut);
    });

    test.each<[string, (fence: number) => Promise<unknown>]>([
      ["released", () => store.release(key, "a")],
      ["done", () => store.complete(key, "a")],
    ])("gives a key that was %s and pruned a fence above all that it had", async (_case, end) => {
      clock.advance(300 * dayMs);
      const fence = await fenceOf(store, "a");
      await end(fence);
      clock.advance(100 * dayMs);
      for (let index = 0; index < 3; index++) await store.prune();
      const { rows } = await pool.query(`SELECT key, state FROM ${schema}.countersign_idempotency`);
      expect(rows).toEqual([{ key: "", state: "free" }]);
      clock.advance(-400 * dayMs);
      expect(await fenceOf(store, "b")).toBe(fence + 1);
    });

    test("gives a pruned key a fence above all that it had, although lower fences were pruned with it and after it", async () => {
      for (const lower of ["released", "paid"]) await store.claim(lower, claim("a"));
      await store.release("released", "a");
      await store.complete("paid", "a");
      clock.advance(10 * dayMs);
      const fence = await fenceOf(store, "a");
      await store.release(key, "a");
      clock.advance(dayMs);
      await store.prune();
      clock.advance(80 * dayMs);
      expect(await store.prune()).toBe(1);
      clock.advance(-400 * dayMs);
      expect(await fenceOf(store, "b")).toBe(fence + 1);
    });
  });

  test("counts fences in microseconds of the clock", async () => {
    expect(await fenceOf(store, "a")).toBe(clock.now() * 1000);
    await store.release(key, "a");
    expect(await fenceOf(store, "b")).toBe(clock.now() * 1000 + 1);
    clock.advance(1);
    await store.release(key, "b");
    expect(await fenceOf(store, "c")).toBe(clock.now() * 1000);
  });

  test("takes the longest keys without the compression of an index", async () => {
    const table = `${schema}.countersign_idempotency`;
    await pool.query(`ALTER TABLE ${table} ALTER COLUMN key SET STORAGE EXTERNAL`);
    const surrogates = Array.from({ length: 512 }, (_, i) => 0xd800 + ((i * 37) % 1024));
    const all = String.fromCharCode(...surrogates);
    const longest = ["x".repeat(512), "\u20ac".repeat(512), "\0".repeat(512), all, `${all.slice(0, 511)}x`];
    for (const [index, text] of longest.entries()) {
      expect((await store.claim(text, claim(`t${index}`))).status).toBe("acquired");
      expect(await store.read(text)).toMatchObject({ token: `t${index}` });
    }
  });

  test("fills the pages of a list with done keys that are still remembered", async () => {
    for (const done of ["a", "b", "late"]) {
      if (done === "late") clock.advance(dayMs);
      await store.claim(done, claim("t"));
      await store.complete(done, "t");
    }
    clock.advance(89 * dayMs);
    expect(await store.list({ state: "done", limit: 1 })).toMatchObject({ entries: [{ key: "late" }] });
  });

  test.each(["", "a+b", "_w", "AA"])("refuses the cursor %j of a list", async (cursor) => {
    await expect(store.list({ state: "running", limit: 10, cursor })).rejects.toThrow(/cursor/);
  });

  test("rounds what is left of a lease up: a live one never reads as expired", async () => {
    await store.claim(key, claim("a", { leaseMs: 1 }));
    await pool.query(
      `UPDATE ${schema}.countersign_idempotency SET until_at = until_at - interval '600 microseconds'`,
    );
    expect(await store.claim(key, claim("b"))).toMatchObject({ status: "in-flight", remainingMs: 1 });
    clock.advance(1);
    expect(await store.read(key)).toMatchObject({ remainingMs: 0 });
    expect((await store.claim(key, claim("b"))).status).toBe("acquired");
  });

  test("refuses a row whose state is none of its own", async () => {
    await store.claim(key, claim("a"));
    await pool.query(
      `ALTER TABLE ${schema}.countersign_idempotency DROP CONSTRAINT countersign_idempotency_state_check`,
    );
    await pool.query(`UPDATE ${schema}.countersign_idempotency SET state = 'paid'`);
    await expect(store.claim(key, claim("b"))).rejects.toThrow(/unknown state/);
  });
});

describeOnPostgres("idempotency store by the server's clock", () => {
  test("expires a lease after its time, whatever the session thinks of time zones", async () => {
    const { idempotency: store } = await newStores(
      {},
      { options: "-c TimeZone=Pacific/Chatham -c DateStyle=German" },
    );
    await store.claim("long", claim("a", { leaseMs: 600_000 }));
    const inFlight = await store.claim("long", claim("b"));
    if (inFlight.status !== "in-flight") throw new Error(inFlight.status);
    expect(inFlight.remainingMs).toBeGreaterThan(0);
    expect(inFlight.remainingMs).toBeLessThanOrEqual(600_000);
    const begin = performance.now();
    await store.claim(key, claim("a", { leaseMs: 150 }));
    await eventually(
      async () => (await store.claim(key, claim("b", { leaseMs: 600_000 }))).status === "acquired",
    );
    // The two clocks are not the same one.
    expect(performance.now() - begin).toBeGreaterThan(140);
    expect(await store.heartbeat(key, "b", 3_600_000)).toBe("ok");
    const record = await store.read(key);
    if (record?.state !== "running") throw new Error("not running");
    expect(record.remainingMs).toBeGreaterThan(3_000_000);
    expect(record.remainingMs).toBeLessThanOrEqual(3_600_000);
    expect(await store.complete(key, "b")).toBe("ok");
    expect((await store.claim(key, claim("c"))).status).toBe("done");
  });

  test("answers a burst of duplicates of a paid key by reading, without a write", async () => {
    const { idempotency: store, pool, schema } = await newStores();
    await store.claim(key, claim("a"));
    await store.complete(key, "a");
    const state = async () =>
      (await pool.query(`SELECT xmax::text, ctid::text FROM ${schema}.countersign_idempotency`)).rows;
    const before = await state();
    const burst = Array.from({ length: 500 }, (_, index) => store.claim(key, claim(`t${index}`)));
    for (const result of await Promise.all(burst)) expect(result.status).toBe("done");
    expect(await state()).toEqual(before);
  });

  test.each(["bigint", "number"])("takes an int8 that the driver gives as %s", async (kind) => {
    const types = {
      getTypeParser: (oid: number) => (text: string) =>
        oid === 20 ? (kind === "bigint" ? BigInt(text) : Number(text)) : oid === 16 ? text === "t" : text,
    };
    const { idempotency: store } = await newStores({}, { types });
    expect(await store.claim(key, claim("a"))).toEqual({ status: "acquired", fence: expect.any(Number) });
    expect(await store.read(key)).toMatchObject({ state: "running", remainingMs: expect.any(Number) });
    expect(await store.list({ state: "running", limit: 1 })).toMatchObject({ entries: [{ key }] });
  });

  test.each([
    [19, "acquired"],
    [20, "could not serialize access"],
  ])("sends a statement again that %i times was in the way of others: %s", async (refusals, outcome) => {
    const { pool, schema } = await newStores();
    let refused = 0;
    const busy = {
      query(text: string, values?: unknown[]) {
        if (!text.includes("INSERT") || refused++ >= refusals) return pool.query(text, values);
        return Promise.reject(Object.assign(new Error("could not serialize access"), { code: "40001" }));
      },
    };
    const { idempotency: store } = openStores(busy, { schema });
    const answer = store.claim(key, claim("a")).then(
      ({ status }) => status,
      (error: unknown) => (error as Error).message,
    );
    expect(await answer).toBe(outcome);
  });

  test.each(["repeatable read", "serializable"])(
    "is as correct where the pool's default isolation is %s",
    async (level) => {
      const { idempotency: store, nonces } = await newStores(
        {},
        { options: `-c default_transaction_isolation=${level.replace(" ", "\\ ")}` },
      );
      for (let round = 0; round < 5; round++) {
        const claims = Array.from({ length: 20 }, (_, index) => store.claim(`k${round}`, claim(`t${index}`)));
        const won = (await Promise.all(claims)).filter(({ status }) => status === "acquired");
        expect(won).toHaveLength(1);
        const uses = Array.from({ length: 20 }, (_, index) =>
          nonces.claim({ scope: "s", nonce: `n${round}`, token: `t${index}`, retainMs: 60_000 }),
        );
        const used = await Promise.all(uses);
        expect(used.filter((use) => use === "fresh")).toHaveLength(1);
        const others = Array.from({ length: 20 }, (_, index) =>
          store.claim(`new${round}-${index}`, claim("a")),
        );
        for (const { status } of await Promise.all(others)) expect(status).toBe("acquired");
      }
      const winner = await store.read("k0");
      if (winner?.state !== "running") throw new Error("not running");
      expect(await store.heartbeat("k0", winner.token, 1000)).toBe("ok");
      expect(await store.complete("k0", winner.token)).toBe("ok");
      expect((await store.claim("k0", claim("late"))).status).toBe("done");
    },
  );
});
