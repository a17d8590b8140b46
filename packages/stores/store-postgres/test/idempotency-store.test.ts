import type { IdempotencyClaim } from "@countersign/idempotency";
import type { PostgresIdempotencyStore } from "../dist/idempotency-store.js";
import { beforeEach, describe, expect, test } from "@jest/globals";
import type { Pool } from "pg";
import { describeOnPostgres } from "@countersign/test-support/servers/engines.ts";
import { steadyTest } from "@countersign/test-support/runs/steadily.ts";
import { createStores, dayMs, hostileTexts, newStores, pause, testClock } from "./connections.ts";

const key = "payout-7.acc-1.acc-2";
const leaseMs = 3000;

function claim(token: string, over: Partial<IdempotencyClaim> = {}): IdempotencyClaim {
  return { token, fingerprint: `fingerprint-${token}`, leaseMs, recovery: "rerun", ...over };
}

async function fenceOf(
  store: PostgresIdempotencyStore,
  token: string,
  over?: Partial<IdempotencyClaim>,
): Promise<number> {
  const result = await store.claim(key, claim(token, over));
  if (result.status !== "acquired") throw new Error(`${token} did not acquire: ${result.status}`);
  return result.fence;
}

describeOnPostgres("idempotency store with a clock that the test moves", () => {
  let clock: ReturnType<typeof testClock>;
  let store: PostgresIdempotencyStore;
  let pool: Pool;
  let schema: string;

  beforeEach(async () => {
    clock = testClock();
    ({ idempotency: store, pool, schema } = await newStores({ now: clock.now }));
  });

  test.each([
    ["live", 1000],
    ["expired", 9000],
  ])(
    "recognises its own token in a run that is %s: same fence, same fingerprint, new lease",
    async (_case, ms) => {
      const fence = await fenceOf(store, "a");
      clock.advance(ms);
      for (const recovery of ["rerun", "hold"] as const) {
        expect(await fenceOf(store, "a", { recovery, fingerprint: "other" })).toBe(fence);
        expect(await store.read(key)).toMatchObject({
          fence,
          fingerprint: "fingerprint-a",
          remainingMs: leaseMs,
        });
      }
    },
  );

  test("holds an expired run for whatever is not clearly rerun", async () => {
    await store.claim(key, claim("a"));
    clock.advance(leaseMs);
    const unclear = claim("b", { recovery: undefined as unknown as "rerun" });
    expect((await store.claim(key, unclear)).status).toBe("held");
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

  test.each(["done", "released"] as const)(
    "takes the key from its owner by resolve %s: nothing of the old attempt ends it any more",
    async (outcome) => {
      const fence = await fenceOf(store, "a");
      await store.hold(key, "a", "why");
      expect(await store.resolve(key, outcome, { fence })).toBe("ok");
      const stored = await pool.query(`SELECT token, fence::text FROM ${schema}.countersign_idempotency`);
      expect(stored.rows).toEqual([{ token: expect.stringMatching(/^[\da-f-]{36}$/), fence: String(fence) }]);
      expect(await store.complete(key, "a")).toBe("lost");
      expect(await store.heartbeat(key, "a", leaseMs)).toBe("lost");
      expect(await store.release(key, "a")).toBe("lost");
      expect(await store.hold(key, "a", "why")).toBe("lost");
      if (outcome === "released") {
        expect(await fenceOf(store, "a")).toBeGreaterThan(fence);
        return;
      }
      expect(await store.read(key)).toMatchObject({ state: "done", fence, fingerprint: "fingerprint-a" });
      expect(await store.claim(key, claim("a"))).toEqual({ status: "done", fingerprint: "fingerprint-a" });
    },
  );

  test.each([undefined, Number.NaN, 1.5, "1", 2 ** 53])(
    "refuses the fence %p of a decision",
    async (fence) => {
      await expect(store.resolve(key, "done", { fence: fence as number })).rejects.toThrow(TypeError);
    },
  );

  test("lets no fence shrink when what it belonged to was pruned", async () => {
    const fence = await fenceOf(store, "a");
    await store.release(key, "a");
    await store.claim("other", claim("a"));
    await store.release("other", "a");
    clock.advance(dayMs);
    expect(await store.prune()).toBe(0);
    const { rows } = await pool.query(`SELECT key FROM ${schema}.countersign_idempotency`);
    expect(rows).toEqual([{ key: "" }]);
    for (const state of ["run", "held", "done"] as const) {
      expect(await store.list({ state, limit: 10 })).toEqual({ entries: [], cursor: undefined });
    }
    expect(await fenceOf(store, "b")).toBeGreaterThan(fence + 1);
  });

  test.each([
    ["an empty key", "", "t"],
    ["a key of 513 characters", "k".repeat(513), "t"],
    ["a key of 10 kB", "k".repeat(10_240), "t"],
    ["an object as key", { length: 3 }, "t"],
    ["an array as key", ["k"], "t"],
    ["an empty token", "k", ""],
    ["a number as token", "k", 7],
  ])("refuses %s", async (_case, badKey, token) => {
    await expect(store.claim(badKey as string, claim(token as string))).rejects.toThrow(TypeError);
    await expect(store.complete(badKey as string, token as string)).rejects.toThrow(TypeError);
    await expect(store.heartbeat(badKey as string, token as string, 1)).rejects.toThrow(TypeError);
    await expect(store.release(badKey as string, token as string)).rejects.toThrow(TypeError);
    await expect(store.hold(badKey as string, token as string, "why")).rejects.toThrow(TypeError);
    await expect(store.completeIn(pool, badKey as string, token as string)).rejects.toThrow(TypeError);
  });

  test.each([0, -1, 1.5, Number.NaN, Number.POSITIVE_INFINITY, "1000"])(
    "refuses a lease of %p",
    async (bad) => {
      await expect(store.claim(key, claim("a", { leaseMs: bad as number }))).rejects.toThrow(/leaseMs/);
      await expect(store.heartbeat(key, "a", bad as number)).rejects.toThrow(/leaseMs/);
    },
  );

  test("takes the longest lease that can be written", async () => {
    const longest = { leaseMs: Number.MAX_SAFE_INTEGER };
    await store.claim(key, claim("a", longest));
    clock.advance(1000 * dayMs);
    expect((await store.claim(key, claim("b", longest))).status).toBe("in-flight");
  });

  describe("when the server's clock is set back", () => {
    const hourMs = 3_600_000;
    const row = async () =>
      (await pool.query(`SELECT xmax::text, ctid::text, until_at FROM ${schema}.countersign_idempotency`))
        .rows;

    test.each(["rerun", "hold"] as const)(
      "leaves a dead owner its key for one lease of the claim and no longer, recovery %s",
      async (recovery) => {
        const fence = await fenceOf(store, "a");
        clock.advance(-hourMs);
        const inFlight = { status: "in-flight", fingerprint: "fingerprint-a", remainingMs: leaseMs };
        expect(await store.claim(key, claim("b", { recovery }))).toEqual(inFlight);
        expect(await store.read(key)).toEqual({
          state: "run",
          token: "a",
          fence,
          fingerprint: "fingerprint-a",
          remainingMs: leaseMs,
        });
        clock.advance(leaseMs - 1);
        const last = await store.claim(key, claim("c", { recovery }));
        expect(last).toEqual({ ...inFlight, remainingMs: 1 });
        clock.advance(1);
        const { status } = await store.claim(key, claim("c", { recovery }));
        expect(status).toBe(recovery === "rerun" ? "acquired" : "held");
      },
    );

    test("lets a living owner go on: its heartbeat begins a whole lease, and it completes", async () => {
      await store.claim(key, claim("a"));
      clock.advance(-hourMs);
      await store.claim(key, claim("b"));
      clock.advance(1000);
      expect(await store.heartbeat(key, "a", leaseMs)).toBe("ok");
      expect(await store.claim(key, claim("b"))).toMatchObject({ remainingMs: leaseMs });
      expect(await store.complete(key, "a")).toBe("ok");
    });

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
      ["a release", () => store.release(key, "a")],
      [
        "the end of the lease",
        async () => {
          await store.claim(key, claim("b"));
          clock.advance(leaseMs);
        },
      ],
      [
        "a decision",
        async (fence) => {
          await store.hold(key, "a", "why");
          await store.resolve(key, "released", { fence });
        },
      ],
      [
        "the end of the retention",
        async () => {
          await store.complete(key, "a");
          clock.advance(90 * dayMs);
        },
      ],
    ])("gives the next owner after %s a fence above that of the last one", async (_case, end) => {
      clock.advance(100 * dayMs);
      const fence = await fenceOf(store, "a");
      clock.advance(-100 * dayMs);
      await end(fence);
      expect(await fenceOf(store, "b")).toBe(fence + 1);
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

  test("refuses an outcome, a reason and a fingerprint that it cannot keep", async () => {
    await expect(store.resolve(key, "paid" as "done", { fence: 1 })).rejects.toThrow(/outcome/);
    await expect(store.hold(key, "a", {} as string)).rejects.toThrow(/reason/);
    await expect(store.claim(key, claim("a", { fingerprint: [] as unknown as string }))).rejects.toThrow(
      /fingerprint/,
    );
  });

  test("keeps hostile keys apart and unchanged", async () => {
    for (const [index, [, hostile]] of hostileTexts.entries()) {
      expect((await store.claim(hostile, claim(`t${index}`))).status).toBe("acquired");
    }
    const { entries } = await store.list({ state: "run", limit: 1000 });
    expect(new Set(entries.map((entry) => entry.key))).toEqual(new Set(hostileTexts.map(([, text]) => text)));
    for (const [index, [, hostile]] of hostileTexts.entries()) {
      expect(await store.read(hostile)).toMatchObject({ token: `t${index}` });
      expect(await store.complete(hostile, `t${index}`)).toBe("ok");
      const done = { status: "done", fingerprint: `fingerprint-t${index}` };
      expect(await store.claim(hostile, claim("late"))).toEqual(done);
    }
  });

  test("takes the longest keys without the compression of an index", async () => {
    const table = `${schema}.countersign_idempotency`;
    await pool.query(`ALTER TABLE ${table} ALTER COLUMN key SET STORAGE EXTERNAL`);
    const longest = hostileTexts.filter(([, text]) => text.length === 512);
    for (const [index, [, text]] of longest.entries()) {
      expect((await store.claim(text, claim(`t${index}`))).status).toBe("acquired");
      expect(await store.read(text)).toMatchObject({ token: `t${index}` });
    }
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

  test("gives back tokens, fingerprints and reasons as they were given", async () => {
    for (const [index, [, text]] of hostileTexts.entries()) {
      await store.claim(`k${index}`, claim(text, { fingerprint: text }));
      expect(await store.hold(`k${index}`, text, text)).toBe("ok");
      const kept = { state: "held", token: text, fingerprint: text, reason: text };
      expect(await store.read(`k${index}`)).toMatchObject(kept);
      const held = { status: "held", fingerprint: text, reason: text };
      expect(await store.claim(`k${index}`, claim("b"))).toEqual(held);
    }
  });

  test("refuses every call after close, and leaves the pool open", async () => {
    const { nonces, idempotency, ready, close } = createStores(pool, { schema });
    await ready();
    close();
    close();
    const calls: (() => Promise<unknown>)[] = [
      () => idempotency.claim("k", claim("a")),
      () => idempotency.read("k"),
      () => idempotency.heartbeat("k", "a", 1),
      () => idempotency.complete("k", "a"),
      () => idempotency.completeIn(pool, "k", "a"),
      () => idempotency.release("k", "a"),
      () => idempotency.hold("k", "a", "why"),
      () => idempotency.resolve("k", "done", { fence: 1 }),
      () => idempotency.list({ state: "run", limit: 1 }),
      () => idempotency.prune(),
      () => nonces.claim({ scope: "s", nonce: "n", token: "a", retainMs: 1 }),
      () => nonces.prune(),
    ];
    for (const call of calls) await expect(call()).rejects.toThrow(/closed/);
    expect((await pool.query("SELECT 1 AS one")).rows).toEqual([{ one: 1 }]);
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
  steadyTest("expires a lease after its time, whatever the session thinks of time zones", async () => {
    const { idempotency: store } = await newStores(
      {},
      { options: "-c TimeZone=Pacific/Chatham -c DateStyle=German" },
    );
    await store.claim(key, claim("a", { leaseMs: 150 }));
    const inFlight = await store.claim(key, claim("b"));
    if (inFlight.status !== "in-flight") throw new Error(inFlight.status);
    expect(inFlight.remainingMs).toBeGreaterThan(0);
    expect(inFlight.remainingMs).toBeLessThanOrEqual(150);
    await pause(160);
    expect((await store.claim(key, claim("b"))).status).toBe("acquired");
    expect(await store.heartbeat(key, "b", 60_000)).toBe("ok");
    const record = await store.read(key);
    if (record?.state !== "run") throw new Error("not running");
    expect(record.remainingMs).toBeGreaterThan(55_000);
    expect(record.remainingMs).toBeLessThanOrEqual(60_000);
    expect(await store.complete(key, "b")).toBe("ok");
    expect((await store.claim(key, claim("c"))).status).toBe("done");
  });

  test("gives 50 parallel claims of one key over 10 connections one winner", async () => {
    const { idempotency: store } = await newStores();
    for (const round of ["first", "second", "third"]) {
      const claims = Array.from({ length: 50 }, (_, index) => store.claim(round, claim(`t${index}`)));
      const statuses = (await Promise.all(claims)).map(({ status }) => status);
      expect(statuses.filter((status) => status === "acquired")).toHaveLength(1);
      expect(statuses.filter((status) => status === "in-flight")).toHaveLength(49);
    }
  });

  test.each(["rerun", "hold"] as const)(
    "gives an expired run to one of 50 claims at most, recovery %s",
    async (recovery) => {
      const { idempotency: store } = await newStores();
      const fence = await fenceOf(store, "a", { leaseMs: 1 });
      await pause(5);
      const claims = Array.from({ length: 50 }, (_, index) =>
        store.claim(key, claim(`t${index}`, { recovery })),
      );
      const results = await Promise.all(claims);
      const acquired = results.flatMap((result) => (result.status === "acquired" ? [result.fence] : []));
      expect(acquired).toHaveLength(recovery === "rerun" ? 1 : 0);
      for (const taken of acquired) expect(taken).toBeGreaterThan(fence);
      const others = results.filter(({ status }) => status === (recovery === "rerun" ? "in-flight" : "held"));
      expect(others).toHaveLength(50 - acquired.length);
    },
  );

  test("lets fences of one key only grow while it is claimed and released from many connections", async () => {
    const { idempotency: store } = await newStores();
    const fences: number[] = [];
    const worker = async (name: string): Promise<void> => {
      for (let index = 0, owned = 0; owned < 3; index++) {
        const token = `${name}-${index}`;
        const result = await store.claim(key, claim(token, { leaseMs: 60_000 }));
        if (result.status !== "acquired") continue;
        owned += 1;
        fences.push(result.fence);
        await store.release(key, token);
      }
    };
    await Promise.all(["a", "b", "c", "d", "e", "f"].map(worker));
    expect(fences).toHaveLength(18);
    for (const [index, fence] of fences.entries()) expect(fence).toBeGreaterThan(fences[index - 1] ?? 0);
  });

  test("lets fences grow on a server that has never seen the ones before, as after a failover that lost them", async () => {
    const primary = await newStores();
    const replica = await newStores();
    let last = 0;
    for (const { idempotency } of [primary, replica, primary, replica]) {
      const fence = await fenceOf(idempotency, "a");
      expect(fence).toBeGreaterThan(last);
      await idempotency.release(key, "a");
      last = fence;
    }
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
    expect(await store.read(key)).toMatchObject({ state: "run", remainingMs: expect.any(Number) });
    expect(await store.list({ state: "run", limit: 1 })).toMatchObject({ entries: [{ key }] });
  });

  test.each([
    [19, "acquired"],
    [20, "could not serialize access"],
  ])("sends a statement again that %i times was in the way of others: %s", async (refusals, outcome) => {
    const { pool, schema } = await newStores();
    let refused = 0;
    const busy = {
      query(text: string, values?: unknown[]) {
        if (!text.startsWith("INSERT") || refused++ >= refusals) return pool.query(text, values);
        return Promise.reject(Object.assign(new Error("could not serialize access"), { code: "40001" }));
      },
    };
    const { idempotency: store } = createStores(busy, { schema });
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
      if (winner?.state !== "run") throw new Error("not running");
      expect(await store.heartbeat("k0", winner.token, 1000)).toBe("ok");
      expect(await store.complete("k0", winner.token)).toBe("ok");
      expect((await store.claim("k0", claim("late"))).status).toBe("done");
    },
  );
});
