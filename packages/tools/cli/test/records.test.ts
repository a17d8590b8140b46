import type { IdempotencyListing, IdempotencyListQuery, IdempotencyRecord } from "@countersign/idempotency";
import { describe, expect, test } from "@jest/globals";
import { listKeys, undecidedKeys } from "../src/operator/records.ts";
import type { KeyEntry } from "../src/operator/store.ts";

const attempt = { token: "t", fence: 1, fingerprint: "f" };
const held = (key: string): KeyEntry => ({ key, record: { state: "held", ...attempt, reason: "why" } });
const run = (key: string, remainingMs: number): KeyEntry => ({
  key,
  record: { state: "running", ...attempt, remainingMs },
});

/** A store whose pages are given; the cursor is the number of the page. It records what it was asked. */
function storeOf(pages: Partial<Record<IdempotencyRecord["state"], readonly (readonly KeyEntry[])[]>>) {
  const queries: IdempotencyListQuery[] = [];
  return {
    queries,
    list(query: IdempotencyListQuery): IdempotencyListing {
      queries.push(query);
      const all = pages[query.state] ?? [[]];
      const at = Number(query.cursor ?? 0);
      return { entries: all[at] ?? [], cursor: at + 1 < all.length ? String(at + 1) : undefined };
    },
  };
}

const keysOf = (entries: readonly KeyEntry[]): string[] => entries.map(({ key }) => key);

describe("listKeys", () => {
  test("reads on over empty pages with larger ones, and asks only for what is missing", async () => {
    const store = storeOf({ held: [[], [held("a")], [], [held("b"), held("c")], [held("d")]] });
    const { entries, cursor } = await listKeys(store, { state: "held", limit: 3 });
    expect({ keys: keysOf(entries), cursor }).toEqual({ keys: ["a", "b", "c"], cursor: "4" });
    expect(store.queries.map(({ limit }) => limit)).toEqual([3, 6, 2, 4]);
  });

  test("takes a page that is larger than was asked", async () => {
    const store = storeOf({ held: [[held("a"), held("b"), held("c")], [held("d")]] });
    const { entries } = await listKeys(store, { state: "held", limit: 1 });
    expect(keysOf(entries)).toEqual(["a", "b", "c"]);
  });

  test("begins at the cursor, and has none after the last page", async () => {
    const store = storeOf({ held: [[held("a")], [held("b")]] });
    const { entries, cursor } = await listKeys(store, { state: "held", limit: 5, cursor: "1" });
    expect({ keys: keysOf(entries), cursor }).toEqual({ keys: ["b"], cursor: undefined });
  });

  test("asks for no more than a store gives, and ends when everything was empty", async () => {
    const store = storeOf({ held: Array.from({ length: 12 }, () => []) });
    expect(await listKeys(store, { state: "held", limit: 1 })).toEqual({ entries: [], cursor: undefined });
    expect(store.queries.at(-1)?.limit).toBe(1000);
  });
});

describe("undecidedKeys", () => {
  test("gives a key once that is held while the runs are read, or that a page repeats", async () => {
    const store = storeOf({
      running: [
        [run("a", -1), run("b", 0)],
        [run("a", -5), run("c", 1)],
      ],
      held: [
        [held("b"), held("d")],
        [held("d"), held("c")],
      ],
    });
    const keys: string[] = [];
    for await (const { key } of undecidedKeys(store)) keys.push(key);
    expect(keys).toEqual(["a", "b", "d", "c"]);
    // In the other order a run that is held meanwhile would be missed.
    expect(new Set(store.queries.map(({ state }) => state))).toEqual(new Set(["running", "held"]));
    expect(store.queries[0]?.state).toBe("running");
  });
});
