import { fromPg } from "@countersign/databases";
import { describe, expect, test } from "@jest/globals";
import { testClock } from "@countersign/test-support/runs/after-test.ts";
import { describeOnPostgres } from "@countersign/test-support/servers/engines.ts";
import { connectPool, dayMs } from "./connections.ts";
import { claimOf, keyOf, libraries, newPayouts, nonceOf, payIn, refuseIn } from "./payouts.ts";

const lease = { token: "lease", fingerprint: "f", leaseMs: 60_000, recovery: "hold" } as const;
const nothing = (): Promise<void> => Promise.resolve();

describeOnPostgres("a payment in one transaction", () => {
  describe.each(libraries)("with %s", (_library, as) => {
    const setUp = (options: Parameters<typeof newPayouts>[0] = {}) =>
      newPayouts({ ...options, database: as(fromPg(connectPool({ max: 20 }))) });

    test("commits with its key and its nonce", async () => {
      const { transactions, idempotency, nonces, write, paid } = await setUp();
      const [key, nonce] = [keyOf("k"), nonceOf("n")];
      expect(await payIn(transactions, claimOf([key], { nonce }), (tx) => write(tx, "k"))).toEqual({
        nonce: "fresh",
        keys: [{ status: "begun" }],
      });
      expect(await paid()).toEqual(["k"]);
      const record = await idempotency.read("k");
      expect(record).toMatchObject({ state: "done", token: key.token, fingerprint: "f of k" });
      expect(record?.fence).toBeGreaterThan(1e15);
      expect(await nonces.claim({ ...nonce, token: "other" })).toBe("seen");
    });

    test("finds a nonce that was seen, and touches no key", async () => {
      const { transactions, idempotency, nonces, paid, write } = await setUp();
      const nonce = nonceOf("n");
      await nonces.claim(nonce);
      const claim = claimOf([keyOf("k")], { nonce: { ...nonce, token: "replay" } });
      expect(await payIn(transactions, claim, (tx) => write(tx, "k"))).toEqual({ nonce: "seen", keys: [] });
      expect(await idempotency.read("k")).toBeUndefined();
      expect(await paid()).toEqual([]);
    });

    test("answers a key that is done, and keeps the nonce", async () => {
      const { transactions, nonces, write, paid } = await setUp();
      await payIn(transactions, claimOf([keyOf("k")]), (tx) => write(tx, "k"));
      const nonce = nonceOf("n");
      const again = await payIn(
        transactions,
        claimOf([{ ...keyOf("k"), fingerprint: "changed" }], { nonce }),
        nothing,
      );
      expect(again).toEqual({ nonce: "fresh", keys: [{ status: "done", fingerprint: "f of k" }] });
      expect(await paid()).toEqual(["k"]);
      expect(await nonces.claim({ ...nonce, token: "other" })).toBe("seen");
    });

    test("leaves a key that lease mode runs or holds, and keeps the nonce", async () => {
      const { transactions, idempotency, nonces } = await setUp();
      await idempotency.claim("run", lease);
      await idempotency.claim("held", lease);
      await idempotency.hold("held", "lease", "why");
      const nonce = nonceOf("n");
      const { keys } = await payIn(transactions, claimOf([keyOf("run"), keyOf("held")], { nonce }), nothing);
      expect(keys).toEqual([
        { status: "in-flight", fingerprint: "f", remainingMs: expect.any(Number) },
        { status: "held", fingerprint: "f", reason: "why" },
      ]);
      const [run] = keys;
      expect(run?.status === "in-flight" && run.remainingMs > 0 && run.remainingMs <= 60_000).toBe(true);
      expect(await idempotency.heartbeat("run", "lease", 1_000)).toBe("ok");
      expect(await nonces.claim({ ...nonce, token: "other" })).toBe("seen");
    });

    test("takes over an expired run with `rerun`: its owner's completeIn is lost", async () => {
      const clock = testClock();
      const { transactions, idempotency, write, paid } = await setUp({ now: clock.now });
      const claimed = await idempotency.claim("k", lease);
      clock.advance(60_001);
      const { keys } = await payIn(transactions, claimOf([keyOf("k")]), async (tx) => {
        await write(tx, "k");
      });
      expect(keys).toEqual([{ status: "begun" }]);
      const record = await idempotency.read("k");
      expect(record?.fence).toBeGreaterThan(claimed.status === "acquired" ? claimed.fence : Infinity);
      await transactions.run(async (tx) =>
        expect(await idempotency.completeIn(tx, "k", "lease")).toBe("lost"),
      );
      expect(await idempotency.heartbeat("k", "lease", 1_000)).toBe("lost");
      expect(await paid()).toEqual(["k"]);
    });

    test("writes an expired run as held with `hold`", async () => {
      const clock = testClock();
      const { transactions, idempotency, write, paid } = await setUp({ now: clock.now });
      await idempotency.claim("k", lease);
      clock.advance(60_001);
      const claim = claimOf([keyOf("k")], { recovery: "hold" });
      expect((await payIn(transactions, claim, (tx) => write(tx, "k"))).keys).toEqual([
        { status: "held", fingerprint: "f", reason: "lease-expired" },
      ]);
      expect(await idempotency.read("k")).toMatchObject({
        state: "held",
        token: "lease",
        reason: "lease-expired",
      });
      expect(await paid()).toEqual([]);
    });

    test("takes a key that was freed, and keeps an operator's decision about it", async () => {
      const { transactions, idempotency } = await setUp();
      const claimed = await idempotency.claim("k", lease);
      await idempotency.hold("k", "lease", "why");
      const fence = claimed.status === "acquired" ? claimed.fence : Number.NaN;
      await idempotency.resolve("k", "released", { fence, by: "anna" });
      const key = keyOf("k");
      await refuseIn(transactions, claimOf([key]), nothing);
      expect(await idempotency.readReleased("k")).toMatchObject({ decision: { by: "anna" } });
      expect((await payIn(transactions, claimOf([key]), nothing)).keys).toEqual([{ status: "begun" }]);
      expect(await idempotency.read("k")).toMatchObject({ state: "done", decision: { by: "anna" } });
    });

    test("takes a key whose retention is over, and forgets an operator's decision about it", async () => {
      const clock = testClock();
      const { transactions, idempotency } = await setUp({ now: clock.now, retentionMs: dayMs });
      const claimed = await idempotency.claim("k", lease);
      await idempotency.hold("k", "lease", "why");
      const fence = claimed.status === "acquired" ? claimed.fence : Number.NaN;
      await idempotency.resolve("k", "done", { fence });
      clock.advance(dayMs - 1);
      expect((await payIn(transactions, claimOf([keyOf("k")]), nothing)).keys).toMatchObject([
        { status: "done" },
      ]);
      clock.advance(1);
      expect((await payIn(transactions, claimOf([keyOf("k")]), nothing)).keys).toEqual([{ status: "begun" }]);
      const record = await idempotency.read("k");
      expect(record).toMatchObject({ state: "done" });
      expect(record).not.toHaveProperty("decision");
      clock.advance(dayMs - 1);
      expect(await idempotency.prune()).toBe(0);
      clock.advance(1);
      expect(await idempotency.prune()).toBe(1);
    });

    test("gives fences above the highest one pruned, though the clock was set back", async () => {
      const clock = testClock();
      const { transactions, idempotency } = await setUp({ now: clock.now, retentionMs: dayMs });
      await payIn(transactions, claimOf([keyOf("k")]), nothing);
      const before = (await idempotency.read("k"))?.fence;
      clock.advance(dayMs);
      await idempotency.prune();
      clock.advance(-2 * dayMs);
      await payIn(transactions, claimOf([keyOf("k")]), nothing);
      expect((await idempotency.read("k"))?.fence).toBe((before ?? Number.NaN) + 1);
    });

    test("that its handler refuses keeps the nonce, frees the key for a day, and undoes the rest", async () => {
      const clock = testClock();
      const { transactions, idempotency, nonces, write, paid, pool, schema } = await setUp({
        now: clock.now,
      });
      const [key, nonce] = [keyOf("k"), nonceOf("n")];
      await refuseIn(transactions, claimOf([key], { nonce }), (tx) => write(tx, "k"));
      expect(await paid()).toEqual([]);
      expect(await idempotency.read("k")).toBeUndefined();
      expect(await nonces.claim({ ...nonce, token: "other" })).toBe("seen");
      const { rows } = await pool.query(
        `SELECT state, until_at FROM ${schema}.countersign_idempotency WHERE key = 'k'`,
      );
      expect(rows).toEqual([{ state: "free", until_at: new Date(clock.now() + dayMs) }]);
      expect((await payIn(transactions, claimOf([keyOf("k")]), (tx) => write(tx, "k"))).keys).toEqual([
        { status: "begun" },
      ]);
      expect(await paid()).toEqual(["k"]);
    });

    test("of several keys keeps some and undoes others, each by itself", async () => {
      const { transactions, idempotency, write, paid } = await setUp();
      const keys = ["a", "d", "c", "b"].map(keyOf);
      const statuses: string[] = [];
      await transactions.run(async (tx) => {
        const begun = await transactions.begin(tx, claimOf(keys));
        statuses.push(...begun.keys.map(({ status }) => status));
        for (const [index, key] of keys.entries()) {
          const more = index < keys.length - 1;
          await write(tx, key.key);
          if (key.key < "c") await transactions.keep(tx, [key], more);
          else await transactions.undo(tx, [key], more);
        }
      });
      expect(statuses).toEqual(["begun", "begun", "begun", "begun"]);
      expect(await paid()).toEqual(["a", "b"]);
      const states = await Promise.all(
        ["a", "b", "c", "d"].map(async (key) => (await idempotency.read(key))?.state),
      );
      expect(states).toEqual(["done", "done", undefined, undefined]);
    });

    test("answers in the order of the claim", async () => {
      const { transactions } = await setUp();
      await payIn(transactions, claimOf([keyOf("b")]), nothing);
      const { keys } = await payIn(transactions, claimOf(["c", "b", "a"].map(keyOf)), nothing);
      expect(keys.map(({ status }) => status)).toEqual(["begun", "done", "begun"]);
    });

    test.each([
      ["quotes, backslashes and dollar signs", String.raw`o'clock "x" \' $1 $begin$ ?`],
      ["a NUL", "a\0b"],
      ["a lone surrogate", "a\ud800"],
      ["letters beyond ASCII", "z\u00fcrich \u{1f4b8}"],
      ["512 characters", "\u20ac".repeat(512)],
    ])("takes texts with %s", async (_case, text) => {
      const { transactions, idempotency, nonces } = await setUp();
      const key = { key: text, token: text, fingerprint: text.slice(0, 128) };
      const nonce = { scope: text, nonce: text, token: text, retainMs: 60_000 };
      await payIn(transactions, claimOf([key], { nonce }), nothing);
      expect(await idempotency.read(text)).toMatchObject({
        state: "done",
        token: text,
        fingerprint: key.fingerprint,
      });
      expect(await nonces.claim({ ...nonce, token: "other" })).toBe("seen");
      expect((await payIn(transactions, claimOf([keyOf(text)]), nothing)).keys).toEqual([
        { status: "done", fingerprint: key.fingerprint },
      ]);
      await refuseIn(transactions, claimOf([{ ...keyOf("other"), token: text }]), nothing);
      expect(await idempotency.read("other")).toBeUndefined();
    });
  });

  test("leaves its settings on no connection, and makes its commit durable", async () => {
    const config = { max: 1, options: "-c synchronous_commit=off" };
    const { another, write } = await newPayouts();
    const pool = connectPool(config);
    const { transactions } = another({ database: fromPg(pool) });
    const settings = `SELECT current_setting('lock_timeout') AS wait, current_setting('synchronous_commit') AS durable,
      current_setting('idle_in_transaction_session_timeout') AS idle, current_setting('search_path') AS path`;
    const before = (await pool.query(settings)).rows;
    let within: unknown;
    await payIn(transactions, claimOf([keyOf("k")], { waitMs: 700, idleTimeoutMs: 800 }), async (tx) => {
      await write(tx, "k");
      within = (await tx.query(settings)).rows;
    });
    expect(within).toEqual([{ wait: "700ms", durable: "on", idle: "800ms", path: before[0].path }]);
    expect((await pool.query(settings)).rows).toEqual(before);
  });

  test("ends when the process stands still for longer than it may: nothing of it stays", async () => {
    const { transactions, write, paid, idempotency } = await newPayouts();
    const slow = payIn(transactions, claimOf([keyOf("k")], { idleTimeoutMs: 50 }), async (tx) => {
      await write(tx, "k");
      await new Promise((resolve) => setTimeout(resolve, 300));
    });
    expect(transactions.faultOf(await slow.catch((error: unknown) => error))).toBe("unavailable");
    expect(await paid()).toEqual([]);
    expect(await idempotency.read("k")).toBeUndefined();
  });

  test.each<[string, object, RegExp]>([
    ["a wait without an end", { waitMs: 0 }, /waitMs must be/],
    ["half a millisecond to stand idle", { idleTimeoutMs: 0.5 }, /idleTimeoutMs must be/],

    ["a key twice", { keys: [keyOf("k"), keyOf("k")] }, /must differ/],
    ["an empty key", { keys: [keyOf("")] }, /key must be a string/],
    ["a nonce without a token", { nonce: { scope: "s", nonce: "n", retainMs: 1 } }, /token must be a string/],
  ])("refuses a claim with %s", async (_case, claim, message) => {
    const { transactions } = await newPayouts();
    const begin = transactions.run((tx) => transactions.begin(tx, { ...claimOf([keyOf("k")]), ...claim }));
    await expect(begin).rejects.toThrow(message);
  });

  test("tells the engine, its mode and its retention, and nothing once closed", async () => {
    const { transactions, close } = await newPayouts({ retentionMs: 3 * dayMs });
    expect(transactions).toMatchObject({ engine: "postgresql", mode: "async", retentionMs: 3 * dayMs });
    close();
    await expect(transactions.run(nothing)).rejects.toThrow(/closed/);
  });
});
