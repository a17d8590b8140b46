// The table in memory by its five methods. What the store on it does is in memory-store.test.ts, and in the contract of stores.
import { describe, expect, test } from "@jest/globals";
import type { SeenRow } from "../dist/life.js";
import { MemoryTable } from "../dist/memory-table.js";

const first = {
  state: "running",
  token: "a",
  fingerprint: "f",
  reason: "",
  recovery: "hold",
  durationMs: 100,
} as const;
const renewed = { state: "running", reason: "", durationMs: 100 } as const;
const taken = { ...first, token: "b", raisesFence: true } as const;

function tableAt(nowMs = 0): MemoryTable {
  return new MemoryTable({ max: 3, originMs: 0, now: () => nowMs });
}

function seenIn(table: MemoryTable): SeenRow {
  const row = table.look("k");
  if (row === undefined) throw new Error("the key has no row");
  return row;
}

describe("MemoryTable", () => {
  test("adds the first row of a key, once", () => {
    const table = tableAt();
    expect(table.add("k", first)).toBeGreaterThan(0);
    expect(table.add("k", { ...first, token: "b" })).toMatchObject({ token: "a", version: 1 });
    expect(table.look("k")).toMatchObject({ state: "running", token: "a", remainingMs: 100, version: 1 });
  });

  test("a row that was renewed after it was seen is not taken over", () => {
    const table = tableAt();
    const fence = table.add("k", first);
    const seen = seenIn(table);
    expect(table.write("k", renewed, { token: "a", states: ["running"] })).toBe(fence);
    expect(table.write("k", taken, seen)).toBeUndefined();
    expect(table.look("k")).toMatchObject({ token: "a", version: 2 });
    expect(table.write("k", taken, seenIn(table))).toBeGreaterThan(Number(fence));
  });

  test("an owner's step is written over its own states alone", () => {
    const table = tableAt();
    table.add("k", first);
    expect(table.write("k", renewed, { token: "b", states: ["running"] })).toBeUndefined();
    expect(table.write("k", renewed, { token: "a", states: ["held"] })).toBeUndefined();
    expect(table.write("unknown", renewed, { token: "a", states: ["running"] })).toBeUndefined();
    expect(table.look("k")?.version).toBe(1);
  });
});
