import type { PostgresNonceStore } from "../dist/nonce-store.js";
import { beforeEach, expect, test } from "@jest/globals";
import type { Pool } from "pg";
import { describeOnPostgres } from "@countersign/test-support/servers/engines.ts";
import { steadyTest } from "@countersign/test-support/runs/steadily.ts";
import { createStores, hostileTexts, newStores, pause, testClock } from "./connections.ts";

const use = { scope: "key-1", nonce: "0b7d1b5e-6d5c-4a2c-9d7e-6a7c1f1f9b11", token: "a", retainMs: 120_000 };

describeOnPostgres("nonce store", () => {
  let clock: ReturnType<typeof testClock>;
  let store: PostgresNonceStore;
  let pool: Pool;
  let schema: string;

  beforeEach(async () => {
    clock = testClock();
    ({ nonces: store, pool, schema } = await newStores({ now: clock.now }));
  });

  test("says fresh once, and again to the same token", async () => {
    expect(await store.claim(use)).toBe("fresh");
    expect(await store.claim({ ...use, token: "b" })).toBe("seen");
    expect(await store.claim(use)).toBe("fresh");
    expect(await store.claim({ ...use, token: "b" })).toBe("seen");
  });

  test.each([
    ["another scope", { scope: "key-2" }],
    ["another nonce", { nonce: "other" }],
    ["the nonce in upper case", { nonce: use.nonce.toUpperCase() }],
    ["a scope and a nonce cut elsewhere", { scope: "key-10", nonce: use.nonce.slice(1) }],
  ])("keeps %s apart", async (_case, other) => {
    await store.claim(use);
    expect(await store.claim({ ...use, ...other, token: "b" })).toBe("fresh");
  });

  test("keeps apart what differs only in where a number ends", async () => {
    await store.claim({ ...use, scope: "1", nonce: "1 x" });
    expect(await store.claim({ ...use, scope: "1 1", nonce: " x", token: "b" })).toBe("fresh");
    expect(await store.claim({ ...use, scope: "11", nonce: " x", token: "b" })).toBe("fresh");
  });

  test("keeps hostile scopes, nonces and tokens apart", async () => {
    for (const [, text] of hostileTexts) {
      expect(await store.claim({ ...use, scope: text })).toBe("fresh");
      expect(await store.claim({ ...use, nonce: text })).toBe("fresh");
      expect(await store.claim({ ...use, scope: text, nonce: text, token: text })).toBe("fresh");
    }
    for (const [, text] of hostileTexts) {
      expect(await store.claim({ ...use, scope: text, token: "b" })).toBe("seen");
      expect(await store.claim({ ...use, nonce: text, token: "b" })).toBe("seen");
      expect(await store.claim({ ...use, scope: text, nonce: text, token: text })).toBe("fresh");
      expect(await store.claim({ ...use, scope: text, nonce: text, token: "b" })).toBe("seen");
    }
  });

  test.each([
    ["one millisecond before the retention ends", 119_999, "seen"],
    ["at the very end of the retention", 120_000, "seen"],
    ["one millisecond after it", 120_001, "fresh"],
  ])("remembers %s", async (_when, ms, answer) => {
    await store.claim(use);
    clock.advance(ms);
    expect(await store.claim({ ...use, token: "b" })).toBe(answer);
  });

  test.each([
    ["at the very end of the retention", 120_000, 0],
    ["one millisecond after it", 120_001, 1],
  ])("prunes %s", async (_when, ms, removed) => {
    await store.claim(use);
    clock.advance(ms);
    expect(await store.prune()).toBe(removed);
  });

  test("never shortens the retention when the same claim is repeated, and lengthens it", async () => {
    await store.claim(use);
    await store.claim({ ...use, retainMs: 1 });
    clock.advance(120_000);
    expect(await store.claim({ ...use, token: "b" })).toBe("seen");
    await store.claim(use);
    clock.advance(120_000);
    expect(await store.claim({ ...use, token: "b" })).toBe("seen");
  });

  test("belongs to the token that used it last, when it comes again after the retention", async () => {
    await store.claim(use);
    clock.advance(120_001);
    expect(await store.claim({ ...use, token: "b" })).toBe("fresh");
    expect(await store.claim(use)).toBe("seen");
  });

  test("removes what has expired, batch by batch, and nothing else", async () => {
    await pool.query(
      `INSERT INTO ${schema}.countersign_nonces SELECT sha256(n::text::bytea), 'a', 'epoch' FROM generate_series(1, 1001) AS n`,
    );
    await store.claim(use);
    expect(await store.prune()).toBe(1001);
    expect(await store.prune()).toBe(0);
    expect(await store.claim({ ...use, token: "b" })).toBe("seen");
  });

  test.each([
    ["an empty nonce", { nonce: "" }],
    ["a nonce of 10 kB", { nonce: "n".repeat(10_240) }],
    ["an object as scope", { scope: {} as string }],
    ["an empty token", { token: "" }],
    ["no retention", { retainMs: 0 }],
    ["half a millisecond", { retainMs: 0.5 }],
  ])("refuses %s", async (_case, other) => {
    await expect(store.claim({ ...use, ...other })).rejects.toThrow(TypeError);
  });

  test("takes the longest retention that can be written", async () => {
    expect(await store.claim({ ...use, retainMs: Number.MAX_SAFE_INTEGER })).toBe("fresh");
    clock.advance(1e12);
    expect(await store.claim({ ...use, token: "b" })).toBe("seen");
  });

  test("keeps stores of different tables apart", async () => {
    const stores = await newStores({ table: "other" });
    expect(await store.claim(use)).toBe("fresh");
    expect(await stores.nonces.claim({ ...use, token: "b" })).toBe("fresh");
  });
});

describeOnPostgres("nonce store by the server's clock", () => {
  steadyTest("remembers over connections and processes, for its retention", async () => {
    const { nonces: first, pool, schema } = await newStores();
    expect(await first.claim({ ...use, retainMs: 300 })).toBe("fresh");
    const { nonces: second } = createStores(pool, { schema });
    expect(await second.claim({ ...use, token: "b" })).toBe("seen");
    await pause(310);
    expect(await second.claim({ ...use, token: "b" })).toBe("fresh");
  });

  test("gives 50 parallel uses over 10 connections one fresh", async () => {
    const { nonces } = await newStores();
    for (const nonce of ["first", "second", "third"]) {
      const uses = Array.from({ length: 50 }, (_, index) =>
        nonces.claim({ ...use, nonce, token: `t${index}` }),
      );
      const fresh = (await Promise.all(uses)).filter((answer) => answer === "fresh");
      expect(fresh).toHaveLength(1);
    }
  });
});
