import { encodeText, keyBefore, pageOf, storedRecords } from "@countersign/idempotency/store";
import { cursorBehind } from "../../dist/store-parts/list-query.js";
import { describe, expect, test } from "@jest/globals";
import * as fc from "fast-check";

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

const counts = { fence: 7, remainingMs: 1_000 };
const numbers = { ...counts, integerOf: Number };

describe("storedRecord()", () => {
  test.each(["running", "held", "done", "free"])(
    "gives the texts of a row in state %s as they were given",
    (state) => {
      const texts = { token: "t\0", fingerprint: "\\f", reason: "\ud800" };
      const stored = {
        token: encodeText(texts.token),
        fingerprint: encodeText(texts.fingerprint),
        reason: encodeText(texts.reason),
        recovery: "rerun",
      };
      expect(storedRecords.ofRow({ state, ...stored }, numbers)).toEqual({
        state,
        ...texts,
        recovery: "rerun",
        ...counts,
      });
    },
  );

  test.each([["paid"], [undefined], [null], [["run"]]])("throws at the state %p", (state) => {
    const row = { state, token: "t", fingerprint: "f", reason: "", recovery: "hold" };
    expect(() => storedRecords.ofRow(row, numbers)).toThrow(/unknown state/);
  });

  test.each([["Rerun"], [undefined], [null]])("throws at the recovery %p", (recovery) => {
    const row = { state: "running", token: "t", fingerprint: "f", reason: "", recovery };
    expect(() => storedRecords.ofRow(row, numbers)).toThrow(/unknown recovery/);
  });

  test("gives an operator's decision as it was given, and its reopening", () => {
    const row = { state: "held", token: "t", fingerprint: "f", reason: "why", recovery: "hold" };
    const decided = {
      decision: "released",
      decision_fence: "6",
      decision_at: "1800000000000",
      decision_by: encodeText("a\0"),
      decision_note: null,
      decision_reason: encodeText("\\why"),
      reopened_at: null,
      reopened_by: null,
      reopened_note: null,
    };
    const decision = { outcome: "released", fence: 6, at: 1_800_000_000_000, by: "a\0", reason: "\\why" };
    expect(storedRecords.ofRow({ ...row, ...decided }, numbers).decision).toEqual(decision);
    const reopening = { reopened_at: 1_800_000_000_001, reopened_note: encodeText("\ud800") };
    expect(storedRecords.ofRow({ ...row, ...decided, ...reopening }, numbers).decision).toEqual({
      ...decision,
      reopened: { at: 1_800_000_000_001, note: "\ud800" },
    });
    expect(storedRecords.ofRow({ ...row, decision: null }, numbers).decision).toBeUndefined();
    expect(() => storedRecords.ofRow({ ...row, decision: "paid" }, numbers)).toThrow(/unknown decision/);
  });
});
