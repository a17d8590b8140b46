import type { IdempotencyListing, IdempotencyListQuery, IdempotencyRecord } from "@countersign/idempotency";
import { describe, expect, test } from "@jest/globals";
import type { KeyEntry } from "../src/operator/known-record.ts";
import { listKeys, listUndecided } from "../src/operator/list-keys.ts";

const attempt = { token: "t", fence: 1, fingerprint: "f" };
const held = (key: string): KeyEntry => ({ key, record: { state: "held", ...attempt, reason: "why" } });
const run = (key: string, remainingMs: number): KeyEntry => ({
  key,
  record: { state: "run", ...attempt, remainingMs },
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

async function shown(list: (show: (entry: KeyEntry) => void) => Promise<unknown>): Promise<string[]> {
  const keys: string[] = [];
  await list(({ key }) => keys.push(key));
  return keys;
}

describe("listKeys", () => {
  test("reads on over empty pages with larger ones, and asks only for what is missing", async () => {
    const store = storeOf({ held: [[], [held("a")], [], [held("b"), held("c")], [held("d")]] });
    const query = { state: "held", limit: 3 } as const;
    expect(await shown((show) => listKeys(store, query, show))).toEqual(["a", "b", "c"]);
    expect(store.queries.map(({ limit }) => limit)).toEqual([3, 6, 2, 4]);
    expect(await listKeys(store, query, () => {})).toBe("4");
  });

  test("takes a page that is larger than was asked", async () => {
    const store = storeOf({ held: [[held("a"), held("b"), held("c")], [held("d")]] });
    expect(await shown((show) => listKeys(store, { state: "held", limit: 1 }, show))).toEqual([
      "a",
      "b",
      "c",
    ]);
  });

  test("begins at the cursor, and has none after the last page", async () => {
    const store = storeOf({ held: [[held("a")], [held("b")]] });
    const query = { state: "held", limit: 5, cursor: "1" } as const;
    expect(await shown((show) => listKeys(store, query, show))).toEqual(["b"]);
    expect(await listKeys(store, query, () => {})).toBeUndefined();
  });

  test("asks for no more than a store gives", async () => {
    const store = storeOf({ held: Array.from({ length: 12 }, () => []) });
    await listKeys(store, { state: "held", limit: 1 }, () => {});
    expect(store.queries.at(-1)?.limit).toBe(1000);
  });

  test("ends when everything was empty", async () => {
    const store = storeOf({ held: [[], [], []] });
    expect(await listKeys(store, { state: "held", limit: 5 }, () => {})).toBeUndefined();
    expect(store.queries).toHaveLength(3);
  });
});

describe("listUndecided", () => {
  test("shows a key once that is held while the runs are read, or that a page repeats", async () => {
    const store = storeOf({
      run: [
        [run("a", -1), run("b", 0)],
        [run("a", -5), run("c", 1)],
      ],
      held: [
        [held("b"), held("d")],
        [held("d"), held("c")],
      ],
    });
    expect(await shown((show) => listUndecided(store, show))).toEqual(["a", "b", "d", "c"]);
    expect(await listUndecided(store, () => {})).toBe(4);
  });

  test("reads the runs before the held keys, so that a run that is held meanwhile is not missed", async () => {
    const store = storeOf({});
    await listUndecided(store, () => {});
    expect(store.queries.map(({ state }) => state)).toEqual(["run", "held"]);
  });
});
