import type { IdempotencyListQuery } from "@countersign/idempotency";
import type { PostgresIdempotencyStore } from "../dist/idempotency-store.js";
import { beforeEach, expect, test } from "@jest/globals";
import type { Pool } from "pg";
import { describeOnPostgres } from "@countersign/test-support/servers/engines.ts";
import { dayMs, hostileTexts, newStores, testClock } from "./connections.ts";

const leaseMs = 1000;
const claim = (token: string) => ({ token, fingerprint: `f-${token}`, leaseMs, recovery: "rerun" }) as const;

async function pages(
  store: PostgresIdempotencyStore,
  query: Omit<IdempotencyListQuery, "cursor">,
): Promise<string[][]> {
  const all: string[][] = [];
  let cursor: string | undefined;
  do {
    const page = await store.list({ ...query, cursor });
    all.push(page.entries.map(({ key }) => key));
    cursor = page.cursor;
  } while (cursor !== undefined);
  return all;
}

describeOnPostgres("list()", () => {
  let clock: ReturnType<typeof testClock>;
  let store: PostgresIdempotencyStore;
  let pool: Pool;
  let schema: string;

  beforeEach(async () => {
    clock = testClock();
    ({ idempotency: store, pool, schema } = await newStores({ now: clock.now }));
    for (const key of ["running", "held", "done", "released"]) await store.claim(key, claim(key));
    await store.hold("held", "held", "bank timed out");
    await store.complete("done", "done");
    await store.release("released", "released");
  });

  test.each(["run", "held", "done"] as const)(
    "lists the keys in state %s as read() gives them",
    async (state) => {
      clock.advance(300);
      const key = state === "run" ? "running" : state;
      const record = await store.read(key);
      expect(record?.state).toBe(state);
      expect(await store.list({ state, limit: 10 })).toEqual({
        entries: [{ key, record }],
        cursor: undefined,
      });
    },
  );

  test("lists a run whose lease has expired, and says since when", async () => {
    clock.advance(leaseMs + 250);
    const { entries } = await store.list({ state: "run", limit: 10 });
    expect(entries).toMatchObject([{ key: "running", record: { state: "run", remainingMs: -250 } }]);
  });

  test("lists a done key to the end of its retention and not at it", async () => {
    clock.advance(90 * dayMs - 1);
    expect(await pages(store, { state: "done", limit: 10 })).toEqual([["done"]]);
    clock.advance(1);
    expect(await store.list({ state: "done", limit: 10 })).toEqual({ entries: [], cursor: undefined });
  });

  test("fills its pages with done keys that are still remembered", async () => {
    for (const key of ["a", "b", "c"]) {
      await store.claim(key, claim(key));
      await store.complete(key, key);
    }
    clock.advance(dayMs);
    await store.claim("late", claim("late"));
    await store.complete("late", "late");
    clock.advance(89 * dayMs);
    expect(await pages(store, { state: "done", limit: 1 })).toEqual([["late"]]);
  });

  test("gives each key once, over pages that end with the last key, whatever the keys are", async () => {
    const keys = hostileTexts.map(([, text]) => text);
    for (const [index, key] of keys.entries()) {
      await store.claim(key, claim(`t${index}`));
      await store.hold(key, `t${index}`, "why");
    }
    const listed = await pages(store, { state: "held", limit: 7 });
    expect(listed.flat()).toHaveLength(keys.length + 1);
    expect(new Set(listed.flat())).toEqual(new Set([...keys, "held"]));
    for (const page of listed.slice(0, -1)) expect(page).toHaveLength(7);
    expect(await pages(store, { state: "held", limit: keys.length + 1 })).toHaveLength(1);
  });

  test("moves no key from page to page when others come and go", async () => {
    for (const key of ["b", "d", "f", "h"]) await store.claim(key, claim(key));
    const first = await store.list({ state: "run", limit: 2 });
    expect(first.entries.map(({ key }) => key)).toEqual(["b", "d"]);
    await store.release("b", "b");
    await store.claim("a", claim("a"));
    const second = await store.list({ state: "run", limit: 2, cursor: first.cursor });
    expect(second.entries.map(({ key }) => key)).toEqual(["f", "h"]);
  });

  test.each<[string, Partial<IdempotencyListQuery>, RegExp]>([
    ["an unknown state", { state: "free" as "run" }, /state must be one of/],
    ["no limit", { limit: undefined as unknown as number }, /limit/],
    ["a limit of 0", { limit: 0 }, /limit/],
    ["a limit of 1,001", { limit: 1001 }, /limit/],
    ["half a limit", { limit: 0.5 }, /limit/],
    ["an empty cursor", { cursor: "" }, /cursor/],
    ["a cursor that is no base64url", { cursor: "a+b" }, /cursor/],
    ["a cursor that is no UTF-8", { cursor: "_w" }, /cursor/],
    ["a cursor with a NUL", { cursor: "AA" }, /cursor/],
    ["a number as cursor", { cursor: 7 as unknown as string }, /cursor/],
  ])("refuses %s", async (_case, over, message) => {
    const listing = store.list({ state: "run", limit: 10, ...over });
    await expect(listing).rejects.toThrow(TypeError);
    await expect(listing).rejects.toThrow(message);
  });

  test("shows an operator the stored keys in SQL as they are", async () => {
    const held = `SELECT key, reason FROM ${schema}.countersign_idempotency WHERE state = 'held'`;
    expect((await pool.query(held)).rows).toEqual([{ key: "held", reason: "bank timed out" }]);
  });
});
