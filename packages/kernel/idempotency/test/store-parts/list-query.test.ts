import { assertListQuery, keyBefore, pageOf } from "@countersign/idempotency/store";
import { cursorBehind } from "../../dist/store-parts/list-query.js";
import { describe, expect, test } from "@jest/globals";
import * as fc from "fast-check";

describe("assertListQuery()", () => {
  test.each([
    ["run", 1],
    ["held", 500],
    ["done", 1000],
  ])("takes %s with a limit of %d", (state, limit) => {
    expect(() => assertListQuery("a store", { state, limit })).not.toThrow();
  });

  test.each([
    ["a state that no reader sees", { state: "free", limit: 10 }, /^a store: state must be/],
    ["no state", { state: undefined, limit: 10 }, /^a store: state must be/],
    ["states", { state: ["run"], limit: 10 }, /^a store: state must be/],
    ["no limit", { state: "run", limit: undefined }, /^a store: limit must be/],
    ["a limit of 0", { state: "run", limit: 0 }, /^a store: limit must be/],
    ["a limit above 1,000", { state: "run", limit: 1001 }, /^a store: limit must be/],
    ["half a key", { state: "run", limit: 1.5 }, /^a store: limit must be/],
    ["a limit as text", { state: "run", limit: "10" }, /^a store: limit must be/],
  ])("refuses %s", (_case, query, message) => {
    expect(() => assertListQuery("a store", query)).toThrow(TypeError);
    expect(() => assertListQuery("a store", query)).toThrow(message);
  });
});

describe("keyBefore()", () => {
  test("begins before all keys without a cursor", () => {
    expect(keyBefore("a store", undefined)).toBe("");
  });

  test("undoes cursorBehind()", () => {
    const storedKey = fc.string({ unit: "grapheme", minLength: 1 }).filter((key) => !key.includes("\0"));
    fc.assert(
      fc.property(storedKey, (key) => {
        expect(keyBefore("a store", cursorBehind(key))).toBe(key);
      }),
    );
  });

  test.each([
    ["an empty text", ""],
    ["what is no base64url", "a b"],
    ["padding", Buffer.from("k").toString("base64")],
    ["bytes that are no UTF-8", Buffer.from([0xff, 0xfe]).toString("base64url")],
    ["a NUL, which PostgreSQL takes for an error of its own", Buffer.from("a\0").toString("base64url")],
    ["a number", 7],
    ["null", null],
  ])("refuses %s", (_case, cursor) => {
    expect(() => keyBefore("a store", cursor)).toThrow(/^a store: cursor must be/);
  });
});

describe("pageOf()", () => {
  const record = { state: "done", token: "t", fence: 7, fingerprint: "f" } as const;
  const reading = {
    keyOf: (storedKey: string) => storedKey.toUpperCase(),
    recordOf: (row: Readonly<Record<string, unknown>>) => (row["ended"] === true ? undefined : record),
  };

  test("ends with as many keys as asked for, and its cursor goes on behind the last of them", () => {
    const page = pageOf([{ key: "a" }, { key: "b" }, { key: "c" }], 2, reading);
    expect(page.entries).toEqual([
      { key: "A", record },
      { key: "B", record },
    ]);
    expect(keyBefore("a store", page.cursor)).toBe("b");
  });

  test("leaves out a key that has ended meanwhile, and goes on behind it", () => {
    const page = pageOf([{ key: "a" }, { key: "b", ended: true }, { key: "c" }], 2, reading);
    expect(page.entries).toEqual([{ key: "A", record }]);
    expect(keyBefore("a store", page.cursor)).toBe("b");
  });

  test.each([
    ["no row", []],
    ["as many rows as asked for", [{ key: "a" }, { key: "b" }]],
  ])("has no cursor with %s", (_title, rows) => {
    expect(pageOf(rows, 2, reading)).toEqual({
      entries: rows.map(({ key }) => ({ key: key.toUpperCase(), record })),
      cursor: undefined,
    });
  });
});
